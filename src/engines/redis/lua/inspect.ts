import { WAITS_US } from "./bounds.ts";

/** Questions. What was changed earlier in the same call is written before, so that they see it. */
export const INSPECT: string = String.raw`
function F.runningOf(k)
  local id = k.held and '' or F.idOf(k.head, k.id)
  return { k.worker, digits(k.fence), digits(k.since), digits(k.deadline), k.held and 0 or k.base + k.attempt,
    k.progress and tostring(k.progress) or '', id }
end

-- Where an item is that has not ended, or is a dead letter.
function F.locate(id)
  local receipt = F.findReceipt(id)
  local seq = receipt and receipt.seq or (string.sub(id, 1, 1) == '@' and string.sub(id, 2)) or nil
  local item = seq and F.findItem(seq)
  -- An item that has an id of its own does not answer to the one it would have been given.
  if item and F.idOf(seq, item.id) ~= id then item = nil end
  return receipt, seq, item
end

function F.endedReport(r)
  return { 'E', r.key, r.level, digits(r.submitted), r.attempt, r.state, digits(r.at), r.kind, r.form, r.body, r.failure,
    r.tried, r.missing }
end

function F.deadReport(seq, item)
  local record = C.failures[seq]
  if record == nil then record = call('HGET', N.failures, seq) end
  if not record then return nil end
  local at, attempt, failure = unpackAll(record)
  return { 'E', item.key, item.level, digits(item.submitted), attempt, 'dead', digits(at), '', '', '', failure,
    item.tried, '' }
end

function O.find(at)
  local receipt, seq, item = F.locate(ARGV[at])
  if receipt and receipt.state ~= '' then return F.endedReport(receipt) end
  if not item then return {} end
  local letter = F.deadReport(seq, item)
  if letter then return letter end
  local k = F.findKey(item.key)
  local isHead = k and k.head == seq
  local attempt = item.attempt + (isHead and k.attempt or 0)
  local report = { 'L', item.key, item.level, digits(item.submitted), attempt }
  report[9] = item.tried
  if isHead and k.fence > 0 and not k.held then
    report[6], report[7], report[8] = 'running', '0', F.runningOf(k)
    return report
  end
  report[8] = {}
  F.flush()
  local due = call('ZSCORE', N.due, 'D' .. seq) or call('ZSCORE', N.due, 'Y' .. seq)
  if due then
    report[6], report[7] = 'delayed', digits(tonumber(due))
  else
    report[6], report[7] = 'waiting', digits(isHead and k.due or item.due)
  end
  return report
end

-- How an item ended; or that it has not, in which case whoever asks is told when it has; or that nobody remembers it.
function O.outcome(at)
  local receipt, seq, item = F.locate(ARGV[at])
  if receipt and receipt.state ~= '' then return F.endedReport(receipt) end
  if receipt then
    S.watchers, S.changed = now + ${WAITS_US}, true
    return { 'W' }
  end
  return item and F.deadReport(seq, item) or {}
end

function F.keyReport(name, k)
  local report = { name, k.state, k.held and 1 or 0, k.paused and 1 or 0, k.waits, k.delays }
  if k.fence > 0 then report[7] = F.runningOf(k) end
  return report
end

-- A page of keys; those that are only kept for a hold have nothing to show. The last name that was looked at comes first.
function O.keys(at)
  local after, limit = ARGV[at], tonumber(ARGV[at + 1])
  F.flush()
  local names = call('ZRANGEBYLEX', N.names, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit)
  local page = { names[#names] or '', #names }
  for _, name in ipairs(names) do
    local k = F.lookAtKey(name)
    if k and (k.state == 'damaged' or k.head ~= '' or k.fence > 0 or k.delays > 0 or k.paused) then page[#page + 1] = F.keyReport(name, k) end
  end
  return page
end

function O.dead(at)
  local after, limit, from = ARGV[at], tonumber(ARGV[at + 1]), '-inf'
  F.flush()
  if after ~= '' then
    local _, seq = F.locate(after)
    local place = seq and call('ZSCORE', N.dead, seq)
    -- When the last page's letter is gone by now, so may be those before it; from the start nothing is missed.
    if place then from = '(' .. place end
  end
  local page = {}
  for _, seq in ipairs(call('ZRANGEBYSCORE', N.dead, from, '+inf', 'LIMIT', 0, limit)) do
    local item = F.findItem(seq)
    local at, attempt, failure = unpackAll(call('HGET', N.failures, seq))
    page[#page + 1] = { F.idOf(seq, item.id), item.key, item.level, digits(at), attempt, digits(item.submitted),
      failure, item.kind, item.form, item.body, item.tried }
  end
  return page
end

function O.report()
  local report = { S.written, S.paused and 1 or 0, S.delayed, S.running, S.dead }
  for level = 1, S.levels do report[5 + level] = S.waiting[level] end
  return report
end

function O.leased()
  F.flush()
  return call('ZRANGE', N.leases, 0, -1)
end

function O.key(at)
  local k = F.lookAtKey(ARGV[at])
  return k and F.keyReport(ARGV[at], k) or {}
end
`;
