/** What operators do to items, keys and queues. */
export const OPERATE: string = String.raw`
function O.cancel(at)
  local receipt, seq, item = F.locate(ARGV[at])
  if receipt and receipt.state ~= '' then return 'ended' end
  if not item then return 'missing' end
  if F.deadReport(seq, item) then return 'ended' end
  local name = item.key
  local k = F.findKey(name)
  local isHead = k.head == seq
  F.save(name)
  if isHead and k.fence > 0 and not k.held then
    k.cancel = true
    return 'requested'
  end
  for _, covered in ipairs(F.behind(k, k.covered - 1)) do
    if covered == seq then
      k.cancels = k.cancels or {}
      k.cancels[seq] = true
      return 'requested'
    end
  end
  if not isHead and k.delays > 0 and F.isDelayed(name, seq) then
    F.endItem(seq, item, 'cancelled', item.attempt)
    F.undelay(name, k, seq)
    return 'cancelled'
  end
  if not isHead then
    F.cancelWaiting(k, seq, item)
    return 'cancelled'
  end
  F.endItem(seq, item, 'cancelled', item.attempt + k.attempt)
  F.count(k, item.level, -1)
  if k.fence > 0 then
    k.head, k.attempt, k.due = '', 0, 0
  else
    F.withdraw(name, k)
    F.promote(name, k)
  end
  return 'cancelled'
end

function O.pauseKey(at)
  local name, isPaused = ARGV[at], ARGV[at + 1] == '1'
  local k = F.findKey(name)
  if not k and not isPaused then return 0 end
  k = k or F.makeKey(name)
  if k.paused == isPaused then return 0 end
  k.paused = isPaused
  F.save(name)
  if isPaused and k.state == 'ready' then
    F.outOfReady(name, k)
    k.state = 'parked'
  elseif not isPaused and k.state == 'parked' then
    F.open(name, k)
  end
  return 1
end

-- With all that is kept of it, in one step. Numbers go on above those of before, as they are not less than the time.
function O.deleteQueue(at)
  F.flush()
  local waiting, leased = S.delayed, call('ZCARD', N.leases)
  for level = 1, S.levels do waiting = waiting + S.waiting[level] end
  if ARGV[at] ~= '1' and waiting + leased + S.dead > 0 then return { waiting, leased, S.dead } end
  local held = call('ZRANGE', N.leases, 0, -1)
  for _, name in ipairs(held) do
    local k = F.lookAtKey(name)
    if k and k.state ~= 'damaged' then F.noteLost(name, k) end
  end
  for first = 1, #KEYS, 1000 do call('UNLINK', unpack(KEYS, first, math.min(first + 999, #KEYS))) end
  S.isDeleted = true
  return 1
end

function F.reviveOne(seq, isRetry)
  local item = F.findItem(seq)
  C.dead[seq], C.failures[seq] = false, false
  S.dead, S.changed = S.dead - 1, true
  local id = F.idOf(seq, item.id)
  local remembered = F.isRemembered(item.id, item.keep)
  if not isRetry then
    F.dropItem(seq)
    -- It stays dead as of then, but is remembered from now on only as long as other ended items.
    local r = remembered and F.findReceipt(id)
    if r and item.keep > 0 then
      C.receipts[id] = pack(r.seq, r.key, r.level, r.submitted, F.expire(id, item.keep), r.state, r.at, r.attempt, r.kind,
        r.form, r.body, r.failure, r.tried, r.missing)
    elseif r then
      C.receipts[id] = false
    end
    return
  end
  item.attempt, item.due, item.losses = 0, 0, 0
  F.saveItem(seq, item)
  if remembered then F.remember(id, seq, item.key, item.level, item.submitted) end
  F.arrive(item.key, F.findKey(item.key) or F.makeKey(item.key), seq, item.level, false)
end

-- Those that died up to a place, oldest first, so many at a time. Returns how many, and up to which place to go on; the place comes first.
function O.reviveAll(at)
  local upTo, limit = ARGV[at + 1], tonumber(ARGV[at + 2])
  F.flush()
  if upTo == '' then upTo = digits(F.nextNumber()) end
  local numbers = call('ZRANGEBYSCORE', N.dead, '-inf', upTo, 'LIMIT', 0, limit)
  for _, seq in ipairs(numbers) do F.reviveOne(seq, ARGV[at] == 'retry') end
  return { upTo, #numbers }
end

function O.revive(at)
  local _, seq, item = F.locate(ARGV[at + 1])
  if not item or not F.deadReport(seq, item) then return 0 end
  F.reviveOne(seq, ARGV[at] == 'retry')
  return 1
end

function O.pauseQueue(at)
  S.paused, S.changed = ARGV[at] == '1', true
  -- Whoever waits for work looks again.
  if not S.paused then S.opened = S.opened + 1 end
  return 1
end
`;
