/**
 * The last part: does what it is asked, one operation after the other, then serves claims, writes everything, and tells those who wait.
 * The arguments are those of `operations.ts`. Answers: the time, when to look again, the answers in order, and the news.
 */
export const MAIN: string = String.raw`
-- A server that is full refuses a script whose first write may grow. What ends work must go on then, so it begins with a removal.
if ARGV[2] == '1' then call('HDEL', Q, '-') end
advance()

local results = {}
local at = 4
local operations = {
  submit = function(first)
    local answers, behind = submitGroup(first)
    return answers, behind
  end,
  settle = function(first)
    local answers, behind = {}, first + 1
    for index = 1, tonumber(ARGV[first]) do
      local answer, taken = settle(behind)
      answers[index], behind = answer, behind + taken
    end
    return answers, behind
  end,
  renew = function(first)
    local answers, behind = {}, first + 1
    for index = 1, tonumber(ARGV[first]) do
      answers[index] = renew(ARGV[behind], tonumber(ARGV[behind + 1]), tonumber(ARGV[behind + 2]), ARGV[behind + 3])
      behind = behind + 4
    end
    return answers, behind
  end,
  claim = function(first) return claim(first), first + 4 end,
  hold = function(first)
    return hold(ARGV[first], ARGV[first + 1], tonumber(ARGV[first + 2]), ARGV[first + 3] == '1'), first + 4
  end,
  unwant = function(first) unwant(ARGV[first]) return 1, first + 1 end,
  find = function(first) return find(ARGV[first]), first + 1 end,
  outcome = function(first) return outcome(ARGV[first]), first + 1 end,
  cancel = function(first) return cancel(ARGV[first]), first + 1 end,
  pauseQueue = function(first) pauseQueue(ARGV[first] == '1') return 1, first + 1 end,
  pauseKey = function(first) pauseKey(ARGV[first], ARGV[first + 1] == '1') return 1, first + 2 end,
  report = function(first) return queueReport(), first end,
  keys = function(first) return keyPage(ARGV[first], tonumber(ARGV[first + 1])), first + 2 end,
  leased = function(first) return leasedNames(), first end,
  key = function(first)
    local k = findKey(ARGV[first])
    return k and keyReport(ARGV[first], k) or {}, first + 1
  end,
  dead = function(first) return deadPage(ARGV[first], tonumber(ARGV[first + 1])), first + 2 end,
  reviveAll = function(first)
    return reviveAll(ARGV[first] == 'retry', ARGV[first + 1], tonumber(ARGV[first + 2])), first + 3
  end,
  revive = function(first) return reviveNamed(ARGV[first] == 'retry', ARGV[first + 1]), first + 2 end,
}
while at <= #ARGV do
  results[#results + 1], at = operations[ARGV[at]](at + 1)
end

flush()
nextDue()
forgetExpired()
local left = 0
if opened > 0 and not paused then
  for level = 1, levels do left = left + ready[level] end
end
if watchers <= now then ended = {} end
if changed then
  call('HSET', Q, 'state', pack(number, dueFrom, forgetFrom, sleepers, watchers, paused, delayed, running, dead, choices,
    waiting, ready))
end
if ARGV[3] == '1' then
  local channel = Q .. ':news'
  if sleepers > now then
    if left > 0 then call('SPUBLISH', channel, 'w' .. left) end
    if dueFrom < dueBefore then call('SPUBLISH', channel, 'd' .. digits(dueFrom - now)) end
  end
  if #freed > 0 then call('SPUBLISH', channel, 'h' .. table.concat(freed, '\0')) end
  if #ended > 0 then call('SPUBLISH', channel, 'o' .. table.concat(ended, '\0')) end
  if #lost > 0 then call('SPUBLISH', channel, 'l' .. table.concat(lost, '\0')) end
end
return { digits(now), digits(dueFrom), results, { left, freed, ended, lost } }
`;
