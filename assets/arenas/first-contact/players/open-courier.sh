# player open-courier
# skill watches the letter come, and leaves Redis open
# repeat until 0 every 1s for 10s
test "$(redis-cli GET courier:letter)" = ok
