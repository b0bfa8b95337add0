/** Questions. What was changed earlier in the same call is written before, so that they see it. */
export const INSPECT: string = String.raw`
local function runningOf(k)
  local id = k.held and '' or idOf(k.head, k.id)
  return { k.worker, digits(k.fence), digits(k.since), digits(k.deadline), k.held and 0 or k.base + k.attempt,
    k.progress and tostring(k.progress) or '', id }
end

-- Where an item is that has not ended, or is a dead letter.
local function locate(id)
  local receipt = findReceipt(id)
  local seq = receipt and receipt.seq or (string.sub(id, 1, 1) == '@' and tonumber(string.sub(id, 2))) or nil
  local item = seq and findItem(seq)
  -- An item that has an id of its own does not answer to the one it would have been given.
  if item and idOf(seq, item.id) ~= id then item = nil end
  return receipt, seq, item
end

local function endedReport(r)
  return { 'E', r.key, r.level, digits(r.submitted), r.attempt, r.state, digits(r.at), r.kind, r.form, r.body, r.failure }
end

local function deadReport(seq, item)
  local record = failures[seq]
  if record == nil then record = call('HGET', FAILURES, digits(seq)) end
  if not record then return nil end
  local at, attempt, failure = unpackAll(record)
  return { 'E', item.key, item.level, digits(item.submitted), attempt, 'dead', digits(at), '', '', '', failure }
end

local function find(id)
  local receipt, seq, item = locate(id)
  if receipt and receipt.state ~= '' then return endedReport(receipt) end
  if not item then return {} end
  local letter = deadReport(seq, item)
  if letter then return letter end
  local k = findKey(item.key)
  local isHead = k and k.head == seq
  local attempt = item.attempt + (isHead and k.attempt or 0)
  local report = { 'L', item.key, item.level, digits(item.submitted), attempt }
  if isHead and k.fence > 0 and not k.held then
    report[6], report[7], report[8] = 'running', '0', runningOf(k)
    return report
  end
  flush()
  local due = call('ZSCORE', DUE, 'D' .. digits(seq)) or call('ZSCORE', DUE, 'Y' .. digits(seq))
  if due then
    report[6], report[7] = 'delayed', digits(tonumber(due))
  else
    report[6], report[7] = 'waiting', digits(isHead and k.due or item.due)
  end
  return report
end

-- How an item ended; or that it has not, in which case whoever asks is told when it has; or that nobody remembers it.
local function outcome(id)
  local receipt, seq, item = locate(id)
  if receipt and receipt.state ~= '' then return endedReport(receipt) end
  if receipt then
    watchers, changed = now + 15000000, true
    return { 'W' }
  end
  return item and deadReport(seq, item) or {}
end

local function queueReport()
  local report = { saved[1], paused and 1 or 0, delayed, running, dead }
  for level = 1, levels do report[5 + level] = waiting[level] end
  return report
end

local function keyReport(name, k)
  local report = { name, k.state, k.held and 1 or 0, k.paused and 1 or 0, k.waits, k.delays }
  if k.fence > 0 then report[7] = runningOf(k) end
  return report
end

-- A page of keys; those that are only kept for a hold have nothing to show. The last name that was looked at comes first.
local function keyPage(after, limit)
  flush()
  local names = call('ZRANGEBYLEX', NAMES, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit)
  local page = { names[#names] or '', #names }
  for _, name in ipairs(names) do
    local k = findKey(name)
    if k and (k.head > 0 or k.fence > 0 or k.delays > 0 or k.paused) then page[#page + 1] = keyReport(name, k) end
  end
  return page
end

local function leasedNames()
  flush()
  return call('ZRANGE', LEASED_KEYS, 0, -1)
end

local function deadPage(after, limit)
  local from = '-inf'
  flush()
  if after ~= '' then
    local _, seq = locate(after)
    local place = seq and call('ZSCORE', DEAD, digits(seq))
    -- When the last page's letter is gone by now, so may be those before it; from the start nothing is missed.
    if place then from = '(' .. place end
  end
  local page = {}
  for _, seq in ipairs(call('ZRANGEBYSCORE', DEAD, from, '+inf', 'LIMIT', 0, limit)) do
    local item = findItem(tonumber(seq))
    local at, attempt, failure = unpackAll(call('HGET', FAILURES, seq))
    page[#page + 1] = { idOf(tonumber(seq), item.id), item.key, item.level, digits(at), attempt, digits(item.submitted),
      failure, item.kind, item.form, item.body }
  end
  return page
end
`;
