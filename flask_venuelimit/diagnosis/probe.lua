-- Asks whether this server lets its user do what limits do, and whether it takes writes. Writes nothing: each command
-- is about a key that is not there, in a form that leaves it so.
--
-- KEYS[1]  a key that nothing has, under the prefix of limits
-- Returns  a text for each command that is refused: its name, a blank, and what the server says to it.

local key = KEYS[1]
local commands = {
    {'get', key},
    {'getrange', key, '0', '0'},
    {'strlen', key},
    {'pttl', key},
    {'time'},
    {'set', key, '', 'XX'},
    {'setrange', key, '0', ''},
    {'pexpire', key, '1'},
    {'del', key},
}
local refused = {}
for _, command in ipairs(commands) do
    local answer = redis.pcall(unpack(command))
    if type(answer) == 'table' and answer.err then
        refused[#refused + 1] = command[1] .. ' ' .. answer.err
    end
end
return refused
