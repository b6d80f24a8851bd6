import { describe, expect, test } from 'vitest'

import { answering, resultEvent, taskEvent } from './agent.ts'
import { sharedBench } from './client.ts'

const bench = sharedBench()

/** The events of a stream as `[event, type, payload]`, where the agent sends this text and ends. */
async function relayed(text: string): Promise<readonly (readonly [string, string, unknown])[]> {
  const events = await bench.events(answering(text))
  return events.map(({ event, envelope: { type, payload } }) => [event, type, payload])
}

const DONE = taskEvent('done', 'end')
const END = ['task.done', 'done', 'end'] as const

describe('A8 - dialect (i), task events', () => {
  test('A8 - each event keeps its name, type and payload', async () => {
    expect(
      await relayed(taskEvent('status', { n: 1 }) + taskEvent('artifact', [2]) + taskEvent('done', { n: 3 })),
    ).toEqual([
      ['task.status', 'status_update', { n: 1 }],
      ['task.artifact', 'artifact', [2]],
      ['task.done', 'done', { n: 3 }],
    ])
    expect(await relayed(taskEvent('error', { code: 7 }))).toEqual([['task.error', 'error', { code: 7 }]])
  })

  test('A8 - any other type is a message event of that type', async () => {
    const data = '{"type":"thinking","payload":{"a":1}}'
    expect(await relayed(`data: ${data}\n\nevent: progress\ndata: ${data}\n\n${DONE}`)).toEqual([
      ['message', 'thinking', { a: 1 }],
      ['message', 'thinking', { a: 1 }],
      END,
    ])
  })

  test('A8 - the type alone names the event, the event name alone the type; where they disagree the name decides', async () => {
    expect(
      await relayed(
        'data: {"type":"status_update","payload":1}\n\n' +
          'event: task.artifact\ndata: {"no":"envelope"}\n\n' +
          'event: task.status\ndata: {"type":"done","payload":3}\n\n' +
          'event: task.done\ndata: {"payload":4}\n\n',
      ),
    ).toEqual([
      ['task.status', 'status_update', 1],
      ['task.artifact', 'artifact', { no: 'envelope' }],
      ['task.status', 'status_update', 3],
      ['task.done', 'done', 4],
    ])
  })
})

const status03 = (state: string, more: object = {}) => ({
  kind: 'status-update',
  taskId: 't',
  status: { state },
  ...more,
})
const status10 = (state: string) => ({ statusUpdate: { taskId: 't', status: { state } } })

describe('A8 - dialects (ii) and (iii), A2A 0.3 and 1.0', () => {
  test('A8 - artifacts and running states are not terminal', async () => {
    const artifact03 = { kind: 'artifact-update', taskId: 't', artifact: { artifactId: 'a', parts: [] } }
    const artifact10 = { artifactUpdate: { taskId: 't', artifact: { artifactId: 'a' } } }
    for (const [first, second, last] of [
      [status03('working'), artifact03, status03('completed', { final: true })],
      [status10('TASK_STATE_WORKING'), artifact10, status10('TASK_STATE_COMPLETED')],
    ]) {
      expect(await relayed(resultEvent(first) + resultEvent(second) + resultEvent(last))).toEqual([
        ['task.status', 'status_update', first],
        ['task.artifact', 'artifact', second],
        ['task.done', 'done', last],
      ])
    }
  })

  test.each(['failed', 'rejected', 'canceled'])('A8 - a status of %s is an error', async (state) => {
    const old = status03(state)
    expect(await relayed(resultEvent(old) + DONE)).toEqual([['task.error', 'error', old]])
    const current = status10(`TASK_STATE_${state.toUpperCase()}`)
    expect(await relayed(resultEvent(current) + DONE)).toEqual([['task.error', 'error', current]])
  })

  test.each(['input-required', 'auth-required'])(
    'A8 - %s is done when it is final, or followed by the end',
    async (state) => {
      const final = status03(state, { final: true })
      expect(await relayed(resultEvent(final) + DONE)).toEqual([['task.done', 'done', final]])
      const open = status03(state)
      expect(await relayed(resultEvent(open))).toEqual([
        ['task.status', 'status_update', open],
        ['task.done', 'done', open],
      ])
      const current = status10(`TASK_STATE_${state.toUpperCase().replace('-', '_')}`)
      expect(await relayed(resultEvent(current))).toEqual([
        ['task.status', 'status_update', current],
        ['task.done', 'done', current],
      ])
      // The agent went on by itself.
      const working = status03('working')
      expect(
        (await relayed(resultEvent(open) + resultEvent(working) + resultEvent(status03('completed')))).map(
          ([event]) => event,
        ),
      ).toEqual(['task.status', 'task.status', 'task.done'])
    },
  )

  test('A8, A9 - a message, or a task in an end state, is a message event; the end repeats it as task.done or task.error', async () => {
    const rows: readonly (readonly [object, string])[] = [
      [{ kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: 'hi' }] }, 'done'],
      [{ kind: 'task', id: 't', status: { state: 'completed' } }, 'done'],
      [{ kind: 'task', id: 't', status: { state: 'failed' } }, 'error'],
      [{ kind: 'task', id: 't', status: { state: 'input-required' } }, 'done'],
      [{ message: { role: 'ROLE_AGENT', messageId: 'm', parts: [{ text: 'hi' }] } }, 'done'],
      [{ task: { id: 't', status: { state: 'TASK_STATE_COMPLETED' } } }, 'done'],
      [{ task: { id: 't', status: { state: 'TASK_STATE_REJECTED' } } }, 'error'],
    ]
    for (const [result, type] of rows) {
      expect(await relayed(resultEvent(result))).toEqual([
        ['message', 'message', result],
        [`task.${type}`, type, result],
      ])
    }
  })

  test('A8 - a JSON-RPC error is an error, with its code, message and data', async () => {
    const error = { code: -32042, message: 'no', data: { why: ['x'] } }
    expect(await relayed(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, error })}\n\n${DONE}`)).toEqual([
      ['task.error', 'error', error],
    ])
  })

  test('A8 - results of no known kind are messages that end nothing', async () => {
    for (const result of [{ kind: 'news' }, { other: 1 }, 'text', null, [1]]) {
      expect(await relayed(resultEvent(result) + DONE)).toEqual([['message', 'message', result], END])
    }
  })
})

describe('A8 - what is in no dialect', () => {
  test('A8 - other JSON is a message with the JSON as payload, other text one with the text', async () => {
    expect(await relayed(`data: {"a":1}\n\ndata: 7\n\nevent: ping\ndata: now\ndata: [DONE] "ä"\n\n${DONE}`)).toEqual([
      ['message', 'message', { a: 1 }],
      ['message', 'message', 7],
      ['message', 'message', 'now\n[DONE] "ä"'],
      END,
    ])
  })

  test('A8 - a request where a response is expected is a message', async () => {
    const request = { jsonrpc: '2.0', method: 'ping' }
    expect(await relayed(`data: ${JSON.stringify(request)}\n\n${DONE}`)).toEqual([['message', 'message', request], END])
  })
})

describe('A8 - payloads are verbatim', () => {
  const payload = '{"z":1,"a":12345678901234567890123,"n":1.0e+2,"ä":"\\u00e4 🙂 \\/","d":1,"d":2, "s":"\\ud800"}'

  test.each([
    ['task events', `event: task.done\ndata: {"x":0,"type":"done","payload":${payload},"y":[1]}\n\n`, payload],
    ['the whole data', `event: task.done\ndata: ${payload}\n\n`, payload],
    ['a JSON-RPC error', `data: {"error":${payload},"jsonrpc":"2.0","id":1}\n\n`, payload],
    [
      'A2A 0.3',
      `data: {"jsonrpc":"2.0","result":{"kind":"status-update","status":{"state":"completed"},"m":${payload}},"id":1}\n\n`,
      `{"kind":"status-update","status":{"state":"completed"},"m":${payload}}`,
    ],
    [
      'A2A 1.0',
      `data: {"result":{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}},"m":${payload}},"jsonrpc":"2.0","id":1}\n\n`,
      `{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}},"m":${payload}}`,
    ],
  ])('A8 - %s: key order, big numbers, duplicate keys and escapes are preserved', async (_name, text, expected) => {
    const [event] = await bench.events(answering(text))
    expect(event?.data.slice(event.data.indexOf('"payload":') + 10, -1)).toBe(expected)
  })

  test("A8 - a type of the agent's own may hold any characters, escaped or not", async () => {
    const [event] = await bench.events(answering(`data: {"type":"gr\\u00f6\\u20ac\\n ä🙂","payload":1}\n\n`))
    expect(event).toMatchObject({ event: 'message', envelope: { type: 'grö€\n ä🙂', payload: 1 } })
  })

  test('A8 - JSON over several lines stays one payload, its line ends become blanks', async () => {
    const lines = JSON.stringify({ type: 'done', payload: { a: [1, 'x'] } }, null, 2)
    const text = `event: task.done\n${lines
      .split('\n')
      .map((line) => `data: ${line}`)
      .join('\r\n')}\r\n\r\n`
    const [event] = await bench.events(answering(text))
    expect(event?.data).not.toContain('\n')
    expect(event?.envelope.payload).toEqual({ a: [1, 'x'] })
  })

  test('A8, A10 - each event carries the id of its stream, which the client and the agent learn too', async () => {
    const events = await bench.events(answering(taskEvent('status', 1) + DONE))
    const id = bench.host().streamIds.at(-1)
    expect(bench.agent().streamIds.at(-1)).toBe(id)
    expect(events.map(({ envelope }) => envelope.stream_id)).toEqual([id, id])
    expect(Object.keys(events[0]!.envelope)).toEqual(['stream_id', 'type', 'payload'])
  })
})
