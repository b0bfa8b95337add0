/**
 * The cells that locks are kept in: named values that change by compare-and-swap alone, in one slot, because their versions come from one
 * counter. A cell whose time is up is not there for anybody, whether or not its record still is.
 *
 *   KEYS: a hash with the values, a sorted set of the names, a sorted set of names by their end, the counter
 */
const CELLS = String.raw`
local CELLS, NAMES, ENDS, COUNTER = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local function digits(value) return string.format('%d', value) end
local function read(name)
  local record = call('HGET', CELLS, name)
  if not record then return nil end
  local isOurs, version, ends, value = pcall(cmsgpack.unpack, record)
  -- What somebody else wrote there is a cell that nobody can read, and that can be removed.
  if not isOurs or type(version) ~= 'number' or type(ends) ~= 'number' or type(value) ~= 'string' then return 1, '?' end
  if ends <= now then return nil end
  return version, value
end
`;

/** ARGV: the name. */
export const READ_CELL: string = `${CELLS}${String.raw`
local version, value = read(ARGV[1])
return version and { digits(version), value } or {}
`}`;

/** ARGV: where names begin and end. */
export const LIST_CELLS: string = `${CELLS}${String.raw`
local found = {}
for _, name in ipairs(call('ZRANGEBYLEX', NAMES, '[' .. ARGV[1], '(' .. ARGV[2])) do
  local version, value = read(name)
  if version then found[#found + 1] = { name, digits(version), value } end
end
return found
`}`;

/**
 * ARGV: the name, the version that it must have, what to do (`put` or `remove`), the value, its time in milliseconds or nothing, and the
 * channels on which to tell of it.
 */
export const WRITE_CELL: string = `${CELLS}${String.raw`
local name = ARGV[1]
call('HDEL', CELLS, '')
for _, over in ipairs(call('ZRANGEBYSCORE', ENDS, '-inf', digits(now), 'LIMIT', 0, 50)) do
  call('HDEL', CELLS, over)
  call('ZREM', NAMES, over)
  call('ZREM', ENDS, over)
end
if (read(name) or 0) ~= tonumber(ARGV[2]) then return '0' end
local version = math.max(now, tonumber(call('GET', COUNTER) or 0) + 1)
call('SET', COUNTER, digits(version))
if ARGV[3] == 'remove' then
  call('HDEL', CELLS, name)
  call('ZREM', NAMES, name)
  call('ZREM', ENDS, name)
else
  local ends = 9000000000000000
  if ARGV[5] == '' then
    call('ZREM', ENDS, name)
  else
    ends = now + tonumber(ARGV[5]) * 1000
    call('ZADD', ENDS, digits(ends), name)
  end
  call('HSET', CELLS, name, cmsgpack.pack(version, ends, ARGV[4]))
  call('ZADD', NAMES, '0', name)
end
for index = 6, #ARGV do call('SPUBLISH', ARGV[index], '') end
return digits(version)
`}`;
