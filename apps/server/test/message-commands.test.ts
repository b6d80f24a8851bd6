import { expect, test } from 'vitest'

import { connect } from '@signalbox/client'
import type { CommandOptions, CommandResult } from './support/commands.ts'
import { command, RunningCommand } from './support/commands.ts'
import { serveAll } from './support/server.ts'

const server = serveAll()

/** The environment of a user of the server. */
function env(): Record<string, string> {
  return { SIGNALBOX_URL: server().http.url, SIGNALBOX_API_URL: server().api.url }
}

function run(args: string, options: CommandOptions = {}): Promise<CommandResult> {
  return command(args.split(' '), { ...options, env: { ...env(), ...options.env } })
}

function start(args: string): RunningCommand {
  return new RunningCommand(args.split(' '), { env: env() })
}

function json(text: string): unknown[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}

test('commands - send stores a message once by its id, receive prints and acknowledges it', async () => {
  expect(await run('send jobs one --id a')).toEqual({ code: 0, stdout: 'jobs 1: id a\n', stderr: '' })
  expect((await run('send jobs one --id a')).stdout).toContain('was stored before')
  expect((await run('peek jobs')).stdout).toBe('one\n')
  expect(await run('receive jobs')).toEqual({ code: 0, stdout: 'one\n', stderr: '' })
  expect(await run('receive jobs --wait 0s')).toEqual({ code: 3, stdout: '', stderr: '' })
  expect((await run('peek jobs')).code).toBe(3)
})

test('commands - a JSON object is sent as JSON with its digits, other text as text, bytes as bytes', async () => {
  const body = '{"price": 12345678901234567890.10}'
  await command(['send', 'types', body], { env: env() })
  await command(['send', 'types', '{"n": 1}'], { env: env() })
  await run('send types 42')
  await run('send types -', { stdin: Buffer.from([0xff, 0x00]) })
  await run('send types 7 --content-type application/json')
  const sb = connect(server().http.url)
  const [raw] = await sb.queue('types').peek()
  expect(raw?.contentType).toBe('application/json')
  await sb.close()
  const received = json((await run('receive types --max 10 --json')).stdout)
  expect(received).toMatchObject([
    { content_type: 'application/json' },
    { content_type: 'application/json', data: { n: 1 }, receives: 1, channel: 'types' },
    { content_type: 'text/plain', data: '42' },
    { content_type: 'application/octet-stream', data_base64: '/wA=' },
    { content_type: 'application/json', data: 7 },
  ])
  const broken = await run('send types {x --content-type application/json')
  expect(broken).toMatchObject({ code: 2, stderr: expect.stringContaining('BODY is "{x"; allowed is JSON') })
})

test('commands - --lines sends each line, drain prints all messages, --discard removes them', async () => {
  const sent = await run('send many - --lines --json', { stdin: 'a\nb\r\n\nc' })
  expect(json(sent.stdout)).toMatchObject([{ sequence: 1 }, { sequence: 2 }, { sequence: 3 }])
  expect(await run('drain many')).toMatchObject({
    code: 0,
    stdout: 'a\nb\nc\n',
    stderr: expect.stringContaining(': 3'),
  })
  await run('send many - --lines', { stdin: 'd\ne\n' })
  expect((await run('drain many --discard --json')).stdout).toBe('{"channel":"many","removed":2}\n')
  expect((await run('drain many')).code).toBe(0)
})

test('commands - redrive sends dead letters back to their queue', async () => {
  await run('send fragile x --max-receives 1 --dead-letter fragile.dead')
  const sb = connect(server().http.url)
  for await (const message of sb.queue('fragile').receive()) await message.nack()
  await sb.close()
  await expect.poll(async () => (await run('peek fragile.dead')).stdout).toBe('x\n')
  expect((await run('redrive fragile.dead')).stdout).toBe('messages sent back from fragile.dead: 1\n')
  expect((await run('receive fragile')).stdout).toBe('x\n')
  expect((await run('redrive fragile.dead')).code).toBe(3)
})

test('commands - sub prints events of a pattern, ends at --max, with Ctrl-C, and with 3 after silence', async () => {
  const sub = start('sub orders.* --max 2')
  await sub.until('waiting for messages of orders.*')
  await command(['pub', 'orders.eu', '{"order": 7}'], { env: env() })
  await run('pub orders.us - --lines', { stdin: 'x\ny\n' })
  expect(await sub.result).toMatchObject({ code: 0, stdout: 'orders.eu\t{"order":7}\norders.us\tx\n' })
  const other = start('sub nothing')
  await other.until('waiting')
  other.interrupt()
  expect((await other.result).code).toBe(0)
  expect((await run('sub nothing --wait 100ms')).code).toBe(3)
})

test('commands - log append and log read keep the order, from every start', async () => {
  for (const n of [1, 2, 3]) expect((await run(`log append sales s${n}`)).stdout).toMatch(`sales ${n}: id`)
  expect((await run('log read sales')).stdout).toBe('1\ts1\n2\ts2\n3\ts3\n')
  expect((await run('log read sales --from 2 --max 1')).stdout).toBe('2\ts2\n')
  expect((await run('log read sales --from last')).stdout).toBe('3\ts3\n')
  expect((await run('log read sales --from 1h')).stdout).toBe('1\ts1\n2\ts2\n3\ts3\n')
  expect((await run('log read sales --from 2999-01-01T00:00:00Z')).code).toBe(3)
  expect((await run('log read sales --from soon')).stderr).toContain('--from is "soon"; allowed is first, last')
  expect((await run('log read missing')).code).toBe(3)
  const follower = start('log read sales --follow --from 3 --max 2 --json')
  await follower.until('"s3"')
  await run('log append sales s4')
  expect(json((await follower.result).stdout)).toMatchObject([{ sequence: 3 }, { sequence: 4, data: 's4' }])
})

test('commands - ask prints the answer; a rejection is 1, no responder 3', async () => {
  const sb = connect(server().http.url, { onError: () => {} })
  const answering = sb.answer<{ sku: string }>('queries', 'prices', ({ sku }) => {
    if (sku === '') throw new Error('secret')
    return { sku, price: 9.5 }
  })
  const executing = sb.answer('commands', 'lamp', () => {})
  await Promise.all([answering.ready, executing.ready])
  expect(await command(['ask', 'prices', '{"sku": "a1"}'], { env: env() })).toMatchObject({
    code: 0,
    stdout: '{"sku":"a1","price":9.5}\n',
  })
  expect(await command(['ask', 'prices', '{"sku": ""}'], { env: env() })).toMatchObject({
    code: 1,
    stderr: 'signalbox: the responder failed\n',
  })
  expect((await run('ask lamp on --command')).stdout).toBe('lamp: executed\n')
  expect((await run('ask nobody --timeout 1s')).code).toBe(3)
  const unanswered = await run('ask nobody --timeout 3s')
  expect(unanswered.code).toBe(3)
  const notice = 'signalbox ask: no answer on nobody yet; waiting up to 3s, Ctrl-C ends\n'
  expect(unanswered.stderr).toBe(`${notice}signalbox: "nobody" had no subscriber for 3 s\n`)
  await sb.close()
})

test('commands - monitor prints messages with their direction and client', async () => {
  const monitor = start('monitor --channel watched --direction in --max 1')
  await monitor.until('waiting for messages')
  await run('send watched coffee')
  expect((await monitor.result).stdout).toMatch(/^\S+\tin\tqueues\twatched\tanonymous\tcoffee\n$/)
  const shown = start('monitor --json')
  await shown.until('waiting for messages')
  shown.interrupt()
  expect((await shown.result).code).toBe(0)
  const wrong = await run('monitor --direction up')
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('direction') })
})

test('commands - stats prints totals and lists', async () => {
  await run('send counted x')
  expect((await run('stats')).stdout).toMatch(/^node {11}\S.*\n(.*\n)*queues .*waiting/)
  // The list may be a second old, and short on a busy machine.
  const listed = async () => (await run('stats queues --filter counted')).stdout
  await expect.poll(listed).toMatch(/^name +waiting.*\ncounted +1 /)
  expect(json((await run('stats queues --filter counted --json')).stdout)).toMatchObject([
    { name: 'counted', waiting: 1 },
  ])
  expect(json((await run('stats --json')).stdout)).toMatchObject([{ nodes: [{ engine: 'embedded' }] }])
  expect((await run('stats topics')).stderr).toContain('allowed is queues, channels, stores, clients, agents')
  expect((await run('stats agents')).code).toBe(3)
})

test('commands - map prints the busiest connections', async () => {
  await run('send mapped x')
  await run('receive mapped')
  const listed = await run('map --filter mapped')
  expect(listed.stdout).toMatch(/^from +to +messages +per second +errors +latency ms\ncallers\/\S+ +queues\/mapped +1 /)
  expect(listed.stdout).toMatch(/\nqueues\/mapped +receivers\/\S+ +1 /)
  expect(json((await run('map --window hour --filter mapped --json')).stdout)).toMatchObject([
    { to: 'queues/mapped', messages: 1, errors: 0, latency_ms: null },
    { from: 'queues/mapped', messages: 1, latency_ms: expect.any(Number) },
  ])
  expect((await run('map --filter mapped --max 1')).stderr).toBe(
    'signalbox map: there are more; use --filter or --max\n',
  )
  expect(await run('map --filter nothing-has-this-name')).toMatchObject({ code: 3, stdout: '' })
  expect((await run('map --window day')).stderr).toContain('--window is "day"; allowed is minute or hour')
})

test('commands - errors have an exit code by their kind, one line, or JSON', async () => {
  const away = { env: { SIGNALBOX_URL: 'http://127.0.0.1:9', SIGNALBOX_API_URL: 'http://127.0.0.1:9' } }
  for (const args of ['send a b', 'receive a', 'sub a', 'log read a', 'ask a', 'agents ls', 'stats', 'monitor']) {
    const { code, stderr } = await run(args, away)
    expect([args, code]).toEqual([args, 5])
    expect(stderr).toMatch(/^signalbox: http:\/\/127\.0\.0\.1:9 cannot be reached.*\n$/)
  }
  const reserved = await run('peek _AGENTS_.x --json')
  expect(reserved.code).toBe(2)
  expect(JSON.parse(reserved.stderr)).toMatchObject({ error: { code: 'CHANNEL_RESERVED' }, exit: 2 })
  expect((await run('agents call nobody hi')).code).toBe(3)
  expect((await run('peek')).stderr).toBe('signalbox: peek: allowed is signalbox peek QUEUE [--max 10]\n')
  expect((await run('peek a --max 0')).stderr).toContain('--max is "0"; allowed is a whole number of 1 to 1000')
  expect((await run('receive a --wait soon')).stderr).toContain('allowed is a time such as')
  expect((await run('receive a --waits 1s')).stderr).toContain('--waits: unknown; did you mean --wait?')
  expect((await run('sned a b')).stderr).toContain('"sned": unknown command; did you mean send?')
})

test('commands - only a terminal gets colors and hides control characters; NO_COLOR turns colors off', async () => {
  const escape = '\u001b]0;title\u0007'
  const stored = async () => run('log append colored -', { stdin: escape })
  await stored()
  const options = { terminal: true, env: { TERM: 'xterm' } }
  const plain = await run('log read colored')
  expect(plain.stdout).toBe(`1\t${escape}\n`)
  const colored = await run('log read colored', options)
  expect(colored.stdout).toBe('\u001b[2m1\u001b[22m\t\\u001b]0;title\\u0007\n')
  const without = await run('log read colored', { ...options, env: { TERM: 'xterm', NO_COLOR: '1' } })
  expect(without.stdout).toBe('1\t\\u001b]0;title\\u0007\n')
})
