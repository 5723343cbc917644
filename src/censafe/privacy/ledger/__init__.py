"""The persistent record of all budget ever spent; every cost is in it before the noise that it pays for exists."""
