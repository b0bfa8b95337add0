/** How items end, and what is remembered of them (G4, G9): only for those that ask for it. */
export const ENDINGS: string = String.raw`
local function idOf(seq, id) return id ~= '' and id or '@' .. digits(seq) end

local function findReceipt(id)
  local record = receipts[id]
  if record == nil then record = call('HGET', RECEIPTS, id) end
  if not record then return nil end
  local seq, key, level, submitted, expires, state, at, attempt, kind, form, body, failure = unpackAll(record)
  if expires <= now then
    -- Before somebody else uses the id.
    receipts[id], expiryChanges[id] = false, false
    return nil
  end
  return {
    seq = seq, key = key, level = level, submitted = submitted, state = state, at = at, attempt = attempt, kind = kind,
    form = form, body = body, failure = failure,
  }
end

local function isRemembered(id, keep) return id ~= '' or keep > 0 end

local function remember(id, seq, name, level, submitted)
  receipts[id] = pack(seq, name, level, submitted, NEVER, '', 0, 0, '', '', '', '')
end

local function expire(id, keep)
  local at = now + keep * 1000
  expiryChanges[id] = at
  if at < forgetFrom then forgetFrom = at end
  changed = true
  return at
end

-- A few at a time, so that forgetting never holds up the work, but faster than new ones end.
local function forgetExpired()
  if now < forgetFrom then return end
  changed = true
  local ids = call('ZRANGEBYSCORE', EXPIRIES, '-inf', digits(now), 'LIMIT', 0, 200 + 2 * #ended)
  bulk('HDEL', RECEIPTS, ids)
  bulk('ZREM', EXPIRIES, ids)
  local first = call('ZRANGE', EXPIRIES, 0, 0, 'WITHSCORES')
  forgetFrom = first[2] and tonumber(first[2]) or NEVER
end

-- Notes how a remembered item ended. One that is not kept is forgotten with its end; a dead letter only when somebody drops it.
local function noteEnd(seq, name, level, id, keep, submitted, state, attempt, kind, form, body, failure)
  if not isRemembered(id, keep) then return end
  id = idOf(seq, id)
  ended[#ended + 1] = id
  if state ~= 'dead' and keep == 0 then
    receipts[id] = false
    return
  end
  local expires = state == 'dead' and NEVER or expire(id, keep)
  receipts[id] = pack(seq, name, level, submitted, expires, state, now, attempt, kind or '', form or '', body or '',
    failure or '')
end

-- An item that waits or is delayed ends. The caller takes it out of its line.
local function endItem(seq, item, state, attempt)
  dropItem(seq)
  noteEnd(seq, item.key, item.level, item.id, item.keep, item.submitted, state, attempt)
end

-- The head, which was handed out, ends.
local function endHead(name, k, state, kind, form, body)
  dropItem(k.head)
  noteEnd(k.head, name, k.level, k.id, k.keep, k.submitted, state, k.base + k.attempt, kind, form, body)
end

local function bury(name, k, failure)
  local attempt = k.base + k.attempt
  failures[k.head] = pack(now, attempt, failure)
  deadChanges[k.head] = nextNumber()
  dead = dead + 1
  noteEnd(k.head, name, k.level, k.id, k.keep, k.submitted, 'dead', attempt, '', '', '', failure)
end
`;
