# player nobody
# skill stays out of it
# pause 39m
# note nobody plays here
