/** Accepts items, or says why not. The order of the checks is part of the contract: a known id comes first. */
export const SUBMIT: string = String.raw`
local function queued()
  local sum = delayed
  for level = 1, levels do sum = sum + waiting[level] end
  return sum
end

-- Every item of the key that does not run gives way to the newer one. Returns their ids, and the place of the head, if it may be kept.
local function replaceWaiting(name, k, level, arrivesNow)
  local ids, place = {}, nil
  local function replace(seq, item, attempt)
    ids[#ids + 1] = idOf(seq, item.id)
    endItem(seq, item, 'replaced', attempt)
  end
  if k.head > 0 and (k.fence == 0 or k.held) then
    if arrivesNow and k.level == level and (k.state == READY or k.state == PARKED) then place = k.place end
    if k.fence == 0 then withdraw(name, k) end
    local item = findItem(k.head)
    replace(k.head, item, item.attempt + k.attempt)
    k.waits = k.waits - 1
    waiting[k.level] = waiting[k.level] - 1
    k.head, k.attempt, k.due = 0, 0, 0
  end
  for one = 1, k.lanes and levels or 0 do
    while firstOf(k, one) > 0 do
      local seq = popFront(k, one)
      local item = findItem(seq)
      if item then
        replace(seq, item, item.attempt)
        k.waits = k.waits - 1
        waiting[one] = waiting[one] - 1
      end
    end
  end
  k.lanes, k.gaps = false, false
  if k.delays > 0 then
    for _, seq in ipairs(delayedOf(name)) do
      undelay(name, k, seq)
      local item = findItem(seq)
      replace(seq, item, item.attempt)
    end
  end
  save(name)
  return ids, place
end

local function submit(terms, name, body, id, headers)
  local first = id ~= '' and findReceipt(id)
  if first then return { 'D', first.key, first.level, digits(first.submitted) } end
  local level = terms.level
  if level == 0 then return { 'LEVEL' } end
  local k = findKey(name)
  local size = k and k.waits + k.delays or 0
  if terms.mode == 'strict' and k and (size > 0 or k.fence > 0) then return { 'KEY_BUSY' } end
  if terms.mode == 'fifo' and size >= terms.keyLimit then return { 'KEY_FULL' } end
  local replaces = terms.mode == 'latest' and size > 0
  if not replaces and queued() >= terms.queueLimit then return { 'QUEUE_FULL' } end
  local replaced, place
  if replaces then replaced, place = replaceWaiting(name, k, level, terms.delay == 0) end
  k = k or makeKey(name)
  local seq = nextNumber()
  fresh[seq] = pack(name, level, id, terms.keep, now, 0, 0, terms.kind, terms.form, headers, body)
  if isRemembered(id, terms.keep) then remember(idOf(seq, id), seq, name, level, now) end
  if terms.delay > 0 then delay(name, k, seq, now + terms.delay, 'D') else arrive(name, k, seq, level, false) end
  if not replaced then return digits(seq) end
  if place then
    -- The newest state stands where the older one stood, so that frequent updates do not push a key back for ever.
    k.place = place
    if k.state == READY then readyChanges[k.level][name] = place end
  end
  table.insert(replaced, 1, digits(seq))
  table.insert(replaced, 1, 'R')
  return replaced
end

local function submitGroup(at)
  local terms = {
    level = tonumber(ARGV[at + 1]), kind = ARGV[at + 2], form = ARGV[at + 3], delay = tonumber(ARGV[at + 4]),
    mode = ARGV[at + 5], keyLimit = tonumber(ARGV[at + 6]), queueLimit = tonumber(ARGV[at + 7]),
    keep = tonumber(ARGV[at + 8]),
  }
  local hasIds, hasHeaders, answers = ARGV[at + 9] == '1', ARGV[at + 10] == '1', {}
  local first = at + 11
  for index = 1, tonumber(ARGV[at]) do
    local name, body, id, headers = ARGV[first], ARGV[first + 1], '', ''
    first = first + 2
    if hasIds then id, first = ARGV[first], first + 1 end
    if hasHeaders then headers, first = ARGV[first], first + 1 end
    answers[index] = submit(terms, name, body, id, headers)
  end
  return answers, first
end
`;
