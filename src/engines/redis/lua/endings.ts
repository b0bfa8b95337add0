import { MOST_ATTEMPTS, RELEASED_LINE } from "../../../engine/attempts.ts";

/** How items end, and what is remembered of them (G4, G9): only for those that ask for it. */
export const ENDINGS: string = String.raw`
function F.idOf(seq, id) return id ~= '' and id or '@' .. seq end

function F.findReceipt(id)
  local record = C.receipts[id]
  if record == nil then record = call('HGET', N.receipts, id) end
  if not record then return nil end
  local seq, key, level, submitted, expires, state, at, attempt, kind, form, body, failure, tried, missing = unpackAll(record)
  if expires <= now then
    -- Before somebody else uses the id.
    C.receipts[id], C.expiries[id] = false, false
    return nil
  end
  return {
    seq = seq, key = key, level = level, submitted = submitted, state = state, at = at, attempt = attempt, kind = kind,
    form = form, body = body, failure = failure, tried = tried or '', missing = missing or '',
  }
end

function F.isRemembered(id, keep) return id ~= '' or keep > 0 end

function F.remember(id, seq, name, level, submitted)
  C.receipts[id] = pack(seq, name, level, submitted, NEVER, '', 0, 0, '', '', '', '')
end

function F.expire(id, keep)
  local at = now + keep * 1000
  C.expiries[id] = at
  if at < S.forgetFrom then S.forgetFrom = at end
  S.changed = true
  return at
end

-- A few at a time, so that forgetting never holds up the work, but faster than new ones end.
function F.forgetExpired()
  if now < S.forgetFrom then return end
  S.changed = true
  local ids = call('ZRANGEBYSCORE', N.expiries, '-inf', digits(now), 'LIMIT', 0, 200 + 2 * #S.ended)
  F.bulk('HDEL', N.receipts, ids)
  F.bulk('ZREM', N.expiries, ids)
  local first = call('ZRANGE', N.expiries, 0, 0, 'WITHSCORES')
  S.forgetFrom = first[2] and tonumber(first[2]) or NEVER
end

-- Notes how a remembered item ended. One that is not kept is forgotten with its end; a dead letter only when somebody drops it.
function F.noteEnd(seq, name, level, id, keep, submitted, state, attempt, tried, kind, form, body, failure, missing)
  if not F.isRemembered(id, keep) then return end
  id = F.idOf(seq, id)
  S.ended[#S.ended + 1] = id
  if state ~= 'dead' and keep == 0 then
    C.receipts[id] = false
    return
  end
  local expires = state == 'dead' and NEVER or F.expire(id, keep)
  C.receipts[id] = pack(seq, name, level, submitted, expires, state, now, attempt, kind or '', form or '', body or '',
    failure or '', tried, missing or '')
end

-- An item that waits or is delayed ends. The caller takes it out of its line.
function F.endItem(seq, item, state, attempt)
  F.dropItem(seq)
  F.noteEnd(seq, item.key, item.level, item.id, item.keep, item.submitted, state, attempt, item.tried)
end

-- An item that waits in its lane is cancelled; its number is left there.
function F.cancelWaiting(k, seq, item)
  F.endItem(seq, item, 'cancelled', item.attempt)
  F.count(k, item.level, -1)
  k.gaps = true
end

-- The head, which was handed out, ends.
function F.endHead(name, k, state, kind, form, body, missing)
  -- Nearly always there is no history to be remembered.
  local item = k.tried and F.isRemembered(k.id, k.keep) and F.findItem(k.head)
  F.dropItem(k.head)
  F.noteEnd(k.head, name, k.level, k.id, k.keep, k.submitted, state, k.base + k.attempt, item and item.tried or '', kind,
    form, body, '', missing)
end

-- The history of an item with one attempt more: what addAttempt does.
function F.addAttempt(before, how, attempt, worker, brief)
  local lines = {}
  for line in string.gmatch(before, '[^\n]+') do lines[#lines + 1] = line end
  if string.find(lines[#lines] or '', '${RELEASED_LINE}', 1, true) == 1 then lines[#lines] = nil end
  lines[#lines + 1] = table.concat({ '{"end":"', how, '","attempt":', attempt, ',"at":', digits(math.floor(now / 1000)),
    ',"worker":', cjson.encode(worker), brief == '' and '' or ',"failure":' .. brief, '}' })
  return table.concat(lines, '\n', math.max(1, #lines - ${MOST_ATTEMPTS - 1}))
end

-- An attempt of the head, which is leased, came to nothing: noted with the item. One that somebody has removed holds nothing up.
function F.noteAttempt(k, how, brief)
  local item = F.findItem(k.head)
  if not item then return nil end
  item.tried = F.addAttempt(item.tried, how, item.attempt + k.attempt, k.worker, brief)
  if how == 'lost' then item.losses = item.losses + 1 end
  F.saveItem(k.head, item)
  return item
end

function F.bury(name, k, failure, brief)
  local attempt = k.base + k.attempt
  local item = F.noteAttempt(k, 'failed', brief)
  local tried = item and item.tried or ''
  C.failures[k.head] = pack(now, attempt, failure)
  C.dead[k.head] = F.nextNumber()
  S.dead = S.dead + 1
  F.noteEnd(k.head, name, k.level, k.id, k.keep, k.submitted, 'dead', attempt, tried, '', '', '', failure)
end
`;
