/**
 * The last part: does what it is asked, one operation after the other, then serves claims, writes everything, and tells those who wait.
 * The arguments are those of `operations.ts`. Answers: the time, when to look again, the answers in order, and the news.
 */
export const MAIN: string = String.raw`
-- A server that is full refuses a script whose first write may grow. What ends work must go on then, so it begins with a removal.
if ARGV[2] == '1' then call('HDEL', N.queue, '-') end
F.advance()

-- An operation is its name and how many arguments it has, then these.
local results = {}
local at = 5
while at <= #ARGV do
  results[#results + 1] = O[ARGV[at]](at + 2)
  at = at + 2 + ARGV[at + 1]
end

F.flush()
F.nextDue()
F.forgetExpired()
local left = 0
if S.opened > 0 and not S.paused then
  for level = 1, S.levels do left = left + S.ready[level] end
end
if S.watchers <= now then S.ended = {} end
if S.isDeleted then
  -- Whoever waits for work in it looks, and learns of it.
  left = 1
elseif S.changed then
  call('HSET', N.queue, 'state', pack(S.number, S.dueFrom, S.forgetFrom, S.sleepers, S.watchers, S.paused, S.delayed,
    S.running, S.dead, S.choices, S.waiting, S.ready))
end
if ARGV[3] == '1' then
  local channel = N.queue .. ':news'
  if S.sleepers > now then
    if left > 0 then call('SPUBLISH', channel, 'w' .. left) end
    if not S.isDeleted and S.dueFrom < S.dueBefore then call('SPUBLISH', channel, 'd' .. digits(S.dueFrom - now)) end
  end
  if #S.freed > 0 then call('SPUBLISH', channel, 'h' .. table.concat(S.freed, '\0')) end
  if #S.ended > 0 then call('SPUBLISH', channel, 'o' .. table.concat(S.ended, '\0')) end
  if #S.lost > 0 then call('SPUBLISH', channel, 'l' .. table.concat(S.lost, '\0')) end
end
return { digits(now), digits(S.dueFrom), results, { left, S.freed, S.ended, S.lost, S.dueFrom < S.dueBefore and 1 or 0 } }
`;
