"""Every limit of the quiz: how much, whose bucket, and what is said to those who run into it.

A pub is one address. Whatever counts an address is therefore sized for the room behind it, and whatever
counts a person can be tight, because nobody shares it.
"""

from __future__ import annotations

from flask_venuelimit import SlidingWindow, VenueLimit, by_ip, by_participant, by_user

limiter = VenueLimit()

# A hundred phones asking for the scores six times a minute are 600; as much again for everything else.
limiter.limit(
    SlidingWindow(1200, per=60),
    name="global",
    key=by_ip,
    message="The whole room is asking at once. Give it a moment.",
).everywhere()

# Nobody is anybody before they have joined, so this can only count the address.
join = limiter.limit(
    "150/minute",
    name="join",
    key=by_ip,
    message="A great many people are coming through the door. Try again in a moment.",
)

# The right password gives its charge back; wrong ones and new accounts stay charged.
auth = limiter.failures(
    "10 per 15 minutes",
    name="auth",
    key=by_ip,
    message="Too many attempts to sign in from here. Take a breather.",
)

# From here on people are told apart by their session. `per_address` is for whoever comes without one:
# it is sized for a hundred of them.
submit_answer = limiter.limit(
    "10/minute",
    name="submit-answer",
    key=by_participant,
    per_address="1000/minute",
    message="That is a lot of answers to one question. Think it over for a moment.",
)

poll = limiter.limit(
    "30/minute",
    name="poll",
    key=by_participant,
    per_address="600/minute",
    message="The scores do not change that fast.",
)

rename = limiter.limit(
    "5/minute",
    name="rename",
    key=by_participant,
    per_address="500/minute",
    message="Nobody can remember all those names. Keep this one for a minute.",
)

create_game = limiter.limit(
    "10 per 10 minutes",
    name="create-game",
    key=by_user,
    message="That is ten quizzes in ten minutes. Play one of them first.",
)
