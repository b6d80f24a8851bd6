// Requests of one body each that are dear to read: the shapes that a front door must bound before it builds anything.

/** One hostile request. */
export interface DearRequest {
  readonly name: string
  readonly surface: Surface
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Builds the body: all together would take gigabytes. */
  readonly body: () => string
  /** `true` for up to 10 MB of free-form parameters of an agent, whose limit is higher. */
  readonly freeForm: boolean
}

export type Surface = 'mcp' | 'a2a' | 'ce' | 'management'

/** The agent of these requests. */
export const DEAR_AGENT = 'attack-dear'

const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const EVENT_TYPE = { 'content-type': 'application/cloudevents+json' }
const BATCH_TYPE = { 'content-type': 'application/cloudevents-batch+json' }

/** Returns a part repeated up to a number of characters. */
function times(bytes: number, part: string, glue = ''): string {
  const count = Math.floor(bytes / (part.length + glue.length))
  return count < 1 ? part : `${`${part}${glue}`.repeat(count - 1)}${part}`
}

/** Returns members with different keys. */
function keys(bytes: number, most: number, key: (index: number) => string, value = '""'): string {
  const members: string[] = []
  for (let index = 0, size = 0; index < most && size < bytes; index++) {
    const member = `${JSON.stringify(key(index))}:${value}`
    members.push(member)
    size += member.length + 1
  }
  return members.join(',')
}

/** JSON values that are dear to read, by name. */
function values(bytes: number): Readonly<Record<string, string>> {
  const few = 99_000
  const deep = 100
  return {
    'many keys': `{${keys(bytes, few, (index) => `k${index}`)}}`,
    'too many keys': `{${keys(bytes, Number.POSITIVE_INFINITY, (index) => `k${index}`)}}`,
    'numbers as keys': `{${keys(bytes, few, (index) => String(index * 7_919 + 11))}}`,
    'long keys': `{${keys(bytes, few, (index) => `${index}${'k'.repeat(90)}`)}}`,
    'keys of two bytes': `{${keys(bytes, few, (index) => `k${index}\u0416`)}}`,
    'one key again and again': `{${times(Math.min(bytes, 600_000), '"a":0', ',')}}`,
    'nested objects': `[${times(Math.min(bytes, 1_900_000), `${'{"a":'.repeat(deep)}0${'}'.repeat(deep)}`, ',')}]`,
    'nested arrays': `[${times(Math.min(bytes, 390_000), `${'['.repeat(deep)}${']'.repeat(deep)}`, ',')}]`,
    'empty objects': `[${times(Math.min(bytes, 590_000), '{}', ',')}]`,
    'too many empty objects': `[${times(bytes, '{}', ',')}]`,
    'short strings': `[${times(Math.min(bytes, 790_000), '""', ',')}]`,
    'different strings': `[${keys(bytes, 199_000, (index) => `s${index}`, '').replaceAll(':', '')}]`,
    digits: `[${times(bytes, '1', ',')}]`,
    fractions: `[${times(bytes, '1.7976931348623157e308', ',')}]`,
    literals: `[${times(bytes, 'null', ',')}]`,
    'a long number': '1'.repeat(bytes),
    'a long fraction': `0.${'3'.repeat(bytes)}`,
    'a long exponent': `1e${'9'.repeat(bytes)}`,
    'a long string': `"${'x'.repeat(bytes)}"`,
    'control characters': `"${times(bytes, String.raw`\u0000`)}"`,
    'line breaks': `"${times(bytes, String.raw`\n`)}"`,
    quotes: `"${times(bytes, String.raw`\"`)}"`,
    backslashes: `"${times(bytes, '\\\\')}"`,
    'half pairs': `"${times(bytes, String.raw`\ud800`)}"`,
    'wide letters': `"${times(bytes / 3, '\u6f22')}"`,
    emoji: `"${times(bytes / 4, '\u{1f600}')}"`,
    blanks: `${' '.repeat(bytes)}0`,
    'an open string': `"${'x'.repeat(bytes)}`,
    'open arrays': '['.repeat(bytes),
    colons: ':'.repeat(bytes),
    commas: `[${','.repeat(bytes)}]`,
  }
}

function named(
  surface: Surface,
  path: string,
  headers: Readonly<Record<string, string>>,
  bytes: number,
  places: Readonly<Record<string, (value: string) => string>>,
  freeForm = false,
): readonly DearRequest[] {
  return Object.entries(values(bytes)).flatMap(([value, text]) =>
    Object.entries(places).map(([place, body]) => ({
      name: `${surface} ${place}: ${value}`,
      surface,
      path,
      headers,
      body: () => body(text),
      freeForm,
    })),
  )
}

function call(tool: string, args: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${tool}","arguments":${args}}}`
}

const TO_QUEUE = '"channel":"attack.dear"'

function mcp(bytes: number): readonly DearRequest[] {
  return [
    ...named('mcp', '/mcp', JSON_TYPE, bytes, {
      tags: (value) => call('queue_send', `{${TO_QUEUE},"body":"x","tags":${value}}`),
      body: (value) => call('queue_send', `{${TO_QUEUE},"body":${value}}`),
      channel: (value) => call('queue_send', `{"channel":${value},"body":"x"}`),
      metadata: (value) => call('command_send', `{${TO_QUEUE},"body":"x","metadata":${value}}`),
      'a number': (value) => call('queue_send', `{${TO_QUEUE},"body":"x","delay_seconds":${value}}`),
      'an unknown argument': (value) => call('queue_peek', `{"unknown":${value}}`),
      arguments: (value) => call('queue_send', value),
      'a tool': (value) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${value},"arguments":{}}}`,
      id: (value) => `{"jsonrpc":"2.0","id":${value},"method":"ping"}`,
      method: (value) => `{"jsonrpc":"2.0","id":1,"method":${value}}`,
      params: (value) => `{"jsonrpc":"2.0","id":1,"method":"initialize","params":${value}}`,
      'an unknown member': (value) => `{"jsonrpc":"2.0","id":1,"method":"ping","other":${value}}`,
      _meta: (value) => `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":${value}}}`,
      result: (value) => `{"jsonrpc":"2.0","id":1,"result":${value}}`,
      'a body': (value) => value,
    }),
    ...named(
      'mcp',
      '/mcp',
      JSON_TYPE,
      bytes,
      {
        params: (value) => call('agent_query', `{"agent_id":"${DEAR_AGENT}","method":"a/b","params":{"a":${value}}}`),
      },
      true,
    ),
  ]
}

function rpc(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
}

function a2a(bytes: number): readonly DearRequest[] {
  const path = `/a2a/${DEAR_AGENT}`
  return [
    ...named(
      'a2a',
      path,
      JSON_TYPE,
      bytes,
      {
        params: (value) => rpc('message/send', `{"a":${value}}`),
        id: (value) => `{"jsonrpc":"2.0","id":${value},"method":"message/send","params":{}}`,
        method: (value) => `{"jsonrpc":"2.0","id":1,"method":${value},"params":{}}`,
        configuration: (value) => rpc('message/send', `{"configuration":{"timeout":${value}}}`),
      },
      true,
    ),
    ...named(
      'a2a',
      path,
      { ...JSON_TYPE, 'a2a-version': '1.0' },
      bytes,
      {
        'a message of 1.0': (value) =>
          rpc('SendMessage', `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"data":${value}}]}}`),
        'metadata of 1.0': (value) =>
          rpc('SendMessage', `{"metadata":{"a":${value}},"message":{"messageId":"1","role":"ROLE_USER","parts":[]}}`),
      },
      true,
    ),
    ...named(
      'a2a',
      `${path}/message:send`,
      { ...JSON_TYPE, 'a2a-version': '1.0' },
      bytes,
      {
        'a message over REST': (value) =>
          `{"message":{"messageId":"1","role":"ROLE_USER","parts":[{"data":${value}}]}}`,
      },
      true,
    ),
  ]
}

function ce(bytes: number): readonly DearRequest[] {
  const given: Readonly<Record<string, string>> = { specversion: '"1.0"', id: '"1"', source: '"/a"', type: '"t"' }
  const event = (members: Readonly<Record<string, string>>): string =>
    `{${Object.entries({ ...given, subject: '"attack.dear"', ...members })
      .map(([name, value]) => `"${name}":${value}`)
      .join(',')}}`
  const attributes = ['id', 'source', 'type', 'subject', 'dataschema', 'datacontenttype', 'time', 'extension']
  const long = (text: string): string => JSON.stringify(times(bytes, text))
  return [
    ...named('ce', '/ce/queue/send', EVENT_TYPE, bytes, {
      data: (value) => event({ data: value }),
      'an extension': (value) => event({ extension: value }),
      specversion: (value) => event({ specversion: value }),
      data_base64: (value) => event({ data_base64: value }),
      time: (value) => event({ time: value }),
      source: (value) => event({ source: value }),
      event: (value) => value,
    }),
    ...named('ce', '/ce/queue/send', BATCH_TYPE, bytes, { batch: (value) => `[${event({ data: value })}]` }),
    ...attributes.flatMap((attribute) =>
      ['a', '/', '%41', '.', '\u6f22', 'a:', '[', '2026-01-01T00:00:00Z'].map((text) => ({
        name: `ce ${attribute}: ${JSON.stringify(text)} again and again`,
        surface: 'ce' as const,
        path: '/ce/send/event',
        headers: EVENT_TYPE,
        body: () => event({ [attribute]: long(text) }),
        freeForm: false,
      })),
    ),
  ]
}

function management(bytes: number): readonly DearRequest[] {
  return [
    ...named('management', '/api/actions/send_queue_message', JSON_TYPE, bytes, {
      tags: (value) => `{${TO_QUEUE},"body":"x","tags":${value}}`,
      'a number': (value) => `{${TO_QUEUE},"body":"x","delay_seconds":${value}}`,
      body: (value) => `{${TO_QUEUE},"body":${value}}`,
      arguments: (value) => value,
      'an unknown argument': (value) => `{"unknown":${value}}`,
    }),
    ...named('management', '/api/actions/call_tool', JSON_TYPE, bytes, {
      'arguments of a tool': (value) => `{"name":"queue_send","arguments":{${TO_QUEUE},"body":"x","tags":${value}}}`,
    }),
    ...named(
      'management',
      '/api/actions/call_agent',
      JSON_TYPE,
      bytes,
      {
        'params of an agent': (value) => `{"agent_id":"${DEAR_AGENT}","method":"a/b","params":{"a":${value}}}`,
      },
      true,
    ),
  ]
}

/** Returns every shape on every surface, each about this long. */
export function dearRequests(bytes: number, surface: Surface): readonly DearRequest[] {
  return { mcp, a2a, ce, management }[surface](bytes)
}
