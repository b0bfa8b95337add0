/** Accepts items, or says why not. The order of the checks is part of the contract: a known id comes first. */
export const SUBMIT: string = String.raw`
function F.queued()
  local sum = S.delayed
  for level = 1, S.levels do sum = sum + S.waiting[level] end
  return sum
end

-- Every item of the key that no lease covers gives way to the newer one. Returns their ids, and the place of the head, if it may be kept.
function F.replaceWaiting(name, k, level, arrivesNow)
  local ids, place, covered, isCovered = {}, nil, F.behind(k, k.covered - 1), {}
  for _, seq in ipairs(covered) do isCovered[seq] = true end
  local function replace(seq, item, attempt)
    ids[#ids + 1] = F.idOf(seq, item.id)
    F.endItem(seq, item, 'replaced', attempt)
  end
  if k.head ~= '' and (k.fence == 0 or k.held) then
    if arrivesNow and k.level == level and (k.state == 'ready' or k.state == 'parked') then place = k.place end
    if k.fence == 0 then F.withdraw(name, k) end
    local item = F.findItem(k.head)
    replace(k.head, item, item.attempt + k.attempt)
    F.count(k, k.level, -1)
    k.head, k.attempt, k.due = '', 0, 0
  end
  for one = 1, k.lanes and S.levels or 0 do
    while F.firstOf(k, one) ~= '' do
      local seq = F.popFront(k, one)
      local item = not isCovered[seq] and F.findItem(seq)
      if item then
        replace(seq, item, item.attempt)
        F.count(k, one, -1)
      end
    end
  end
  k.lanes, k.gaps = false, false
  for _, seq in ipairs(covered) do F.pushBack(k, k.level, seq) end
  if k.delays > 0 then
    for _, seq in ipairs(F.delayedOf(name)) do
      F.undelay(name, k, seq)
      local item = F.findItem(seq)
      replace(seq, item, item.attempt)
    end
  end
  F.save(name)
  return ids, place
end

function F.submit(terms, name, body, id, headers)
  local first = id ~= '' and F.findReceipt(id)
  if first then return { 'D', first.key, first.level, digits(first.submitted) } end
  local level = terms.level
  if level == 0 then return { 'LEVEL' } end
  local k = F.findKey(name)
  local size = k and k.waits + k.delays or 0
  if terms.mode == 'strict' and k and (size > 0 or k.fence > 0) then return { 'KEY_BUSY' } end
  if terms.mode == 'fifo' and size >= terms.keyLimit then return { 'KEY_FULL' } end
  local replaces = terms.mode == 'latest' and size > (k and k.covered - 1 or 0)
  if not replaces and F.queued() >= terms.queueLimit then return { 'QUEUE_FULL' } end
  local replaced, place
  if replaces then replaced, place = F.replaceWaiting(name, k, level, terms.delay == 0) end
  k = k or F.makeKey(name)
  local seq = digits(F.nextNumber())
  C.items[seq] = pack(name, level, id, terms.keep, now, 0, 0, terms.kind, terms.form, headers, body)
  if F.isRemembered(id, terms.keep) then F.remember(F.idOf(seq, id), seq, name, level, now) end
  if terms.delay > 0 then F.delay(name, k, seq, now + terms.delay, 'D') else F.arrive(name, k, seq, level, false) end
  if not replaced then return seq end
  if place then
    -- The newest state stands where the older one stood, so that frequent updates do not push a key back for ever.
    k.place = place
    if k.state == 'ready' then C.ready[k.level][name] = place end
  end
  table.insert(replaced, 1, seq)
  table.insert(replaced, 1, 'R')
  return replaced
end

function O.submit(at)
  local terms = {
    level = tonumber(ARGV[at + 1]), kind = ARGV[at + 2], form = ARGV[at + 3], delay = tonumber(ARGV[at + 4]),
    mode = ARGV[at + 5], keyLimit = tonumber(ARGV[at + 6]), queueLimit = tonumber(ARGV[at + 7]),
    keep = tonumber(ARGV[at + 8]),
  }
  local hasIds, hasHeaders, answers = ARGV[at + 9] == '1', ARGV[at + 10] == '1', {}
  local first, count = at + 11, tonumber(ARGV[at])
  local names, step = {}, 2 + (hasIds and 1 or 0) + (hasHeaders and 1 or 0)
  for index = 1, count do names[index] = ARGV[first + (index - 1) * step] end
  F.findKeys(names)
  for index = 1, count do
    local name, body, id, headers = ARGV[first], ARGV[first + 1], '', ''
    first = first + 2
    if hasIds then id, first = ARGV[first], first + 1 end
    if hasHeaders then headers, first = ARGV[first], first + 1 end
    answers[index] = F.submit(terms, name, body, id, headers)
  end
  return answers
end
`;
