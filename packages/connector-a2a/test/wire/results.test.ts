import type {
  Message as Message03,
  Part as Part03,
  Task as Task03,
  TaskPushNotificationConfig as TaskPushNotificationConfig03,
} from 'a2a-js-sdk-v03'
import { expect, test } from 'vitest'

import type { Operation } from '../../src/wire/index.ts'
import { METHODS, translateResult, UntranslatableError } from '../../src/wire/index.ts'
import { withProtoNames } from './arbitraries.ts'

const PART_10 = { text: 'x' }

const PART_03: Part03 = { kind: 'text', text: 'x' }

const MESSAGE_10 = {
  messageId: 'm1',
  contextId: 'c1',
  taskId: 't1',
  role: 'ROLE_USER',
  parts: [PART_10],
  metadata: { a: { b: [] } },
  extensions: ['https://extensions.example/1'],
  referenceTaskIds: ['t0'],
}

const MESSAGE_03: Message03 = { ...MESSAGE_10, kind: 'message', role: 'user', parts: [PART_03] }

const TASK_10 = {
  id: 't1',
  contextId: 'c1',
  status: { state: 'TASK_STATE_WORKING', message: MESSAGE_10, timestamp: '2026-11-22T10:00:00.5Z' },
  artifacts: [
    { artifactId: 'a1', name: 'n', description: 'd', parts: [PART_10], metadata: { b: 2 }, extensions: ['e'] },
    { artifactId: 'a2', parts: [] },
  ],
  history: [MESSAGE_10],
  metadata: { c: 3 },
}

const TASK_03: Task03 = {
  kind: 'task',
  id: 't1',
  contextId: 'c1',
  status: { state: 'working', message: MESSAGE_03, timestamp: '2026-11-22T10:00:00.5Z' },
  artifacts: [
    { artifactId: 'a1', name: 'n', description: 'd', parts: [PART_03], metadata: { b: 2 }, extensions: ['e'] },
    { artifactId: 'a2', parts: [] },
  ],
  history: [MESSAGE_03],
  metadata: { c: 3 },
}

const PUSH_10 = {
  taskId: 't1',
  id: 'p1',
  url: 'https://caller.example/push',
  token: 'secret',
  authentication: { scheme: 'Bearer', credentials: 'abc' },
}

const PUSH_03: TaskPushNotificationConfig03 = {
  taskId: 't1',
  pushNotificationConfig: {
    id: 'p1',
    url: 'https://caller.example/push',
    token: 'secret',
    authentication: { schemes: ['Bearer'], credentials: 'abc' },
  },
}

const ARTIFACT_UPDATE = {
  taskId: 't1',
  contextId: 'c1',
  append: true,
  lastChunk: false,
  metadata: { d: 4 },
}

const RESULTS: readonly { name: string; operation: Operation; v10: unknown; v03: unknown }[] = [
  { name: 'a message', operation: 'send', v10: { message: MESSAGE_10 }, v03: MESSAGE_03 },
  { name: 'a task', operation: 'send', v10: { task: TASK_10 }, v03: TASK_03 },
  { name: 'a task that was read', operation: 'get', v10: TASK_10, v03: TASK_03 },
  { name: 'a task that was canceled', operation: 'cancel', v10: TASK_10, v03: TASK_03 },
  { name: 'a task of a stream', operation: 'stream', v10: { task: TASK_10 }, v03: TASK_03 },
  { name: 'a message of a stream', operation: 'resubscribe', v10: { message: MESSAGE_10 }, v03: MESSAGE_03 },
  {
    name: 'an artifact update',
    operation: 'stream',
    v10: { artifactUpdate: { ...ARTIFACT_UPDATE, artifact: { artifactId: 'a', parts: [PART_10] } } },
    v03: { kind: 'artifact-update', ...ARTIFACT_UPDATE, artifact: { artifactId: 'a', parts: [PART_03] } },
  },
  { name: 'a push notification configuration', operation: 'push-create', v10: PUSH_10, v03: PUSH_03 },
  {
    name: 'push notification configurations',
    operation: 'push-list',
    v10: { configs: [PUSH_10, { taskId: 't1', url: 'u' }] },
    v03: [PUSH_03, { taskId: 't1', pushNotificationConfig: { url: 'u' } }],
  },
  { name: 'no push notification configurations', operation: 'push-list', v10: { configs: [] }, v03: [] },
  { name: 'a deletion', operation: 'push-delete', v10: null, v03: null },
]

for (const { name, operation, v10, v03 } of RESULTS) {
  test(`A2A versions - results: ${name}`, () => {
    expect(translateResult(METHODS[operation], '1.0', '0.3', v10)).toEqual(v03)
    expect(translateResult(METHODS[operation], '0.3', '1.0', v03)).toEqual(v10)
  })
}

test('A2A versions - results: members with the names of Protocol Buffers are translated as those of JSON', () => {
  for (const { name, operation, v10, v03 } of RESULTS) {
    expect([name, translateResult(METHODS[operation], '1.0', '0.3', withProtoNames(v10))]).toEqual([name, v03])
    expect([name, translateResult(METHODS[operation], '0.3', '1.0', withProtoNames(v03))]).toEqual([name, v10])
  }
})

const STATES = [
  ['TASK_STATE_UNSPECIFIED', 'unknown', false],
  ['TASK_STATE_SUBMITTED', 'submitted', false],
  ['TASK_STATE_WORKING', 'working', false],
  ['TASK_STATE_INPUT_REQUIRED', 'input-required', false],
  ['TASK_STATE_AUTH_REQUIRED', 'auth-required', false],
  ['TASK_STATE_COMPLETED', 'completed', true],
  ['TASK_STATE_FAILED', 'failed', true],
  ['TASK_STATE_CANCELED', 'canceled', true],
  ['TASK_STATE_REJECTED', 'rejected', true],
] as const

test('A2A versions - states: each has its name in the other version, and 0.3 marks terminal updates as final', () => {
  for (const [state10, state03, final] of STATES) {
    const update = { taskId: 't1', contextId: 'c1', metadata: { a: 1 } }
    const v10 = { statusUpdate: { ...update, status: { state: state10 } } }
    const v03 = { kind: 'status-update', ...update, status: { state: state03 }, final }
    expect(translateResult(METHODS.stream, '1.0', '0.3', v10)).toEqual(v03)
    expect(translateResult(METHODS.stream, '0.3', '1.0', v03)).toEqual(v10)
  }
})

test('A2A versions - states: a state that the version does not define becomes unknown', () => {
  expect(translateResult(METHODS.get, '0.3', '1.0', taskIn('paused'))).toEqual(taskIn('TASK_STATE_UNSPECIFIED'))
  for (const state of ['TASK_STATE_PAUSED', 'working', undefined]) {
    expect(translateResult(METHODS.get, '1.0', '0.3', taskIn(state))).toMatchObject({ status: { state: 'unknown' } })
  }
  expect(translateResult(METHODS.get, '1.0', '0.3', taskIn('TASK_STATE_CANCELLED'))).toMatchObject({
    status: { state: 'canceled' },
  })
})

test('A2A versions - results: members that 1.0 omits because they are empty are present in 0.3', () => {
  expect(translateResult(METHODS.get, '1.0', '0.3', { id: 't' })).toEqual({
    kind: 'task',
    id: 't',
    contextId: '',
    status: { state: 'unknown' },
  })
  expect(translateResult(METHODS.send, '1.0', '0.3', { message: { messageId: 'm' } })).toEqual({
    kind: 'message',
    messageId: 'm',
    role: 'agent',
    parts: [],
  })
  expect(translateResult(METHODS['push-list'], '1.0', '0.3', {})).toEqual([])
})

test('A2A versions - results: members that the target version does not define are left out', () => {
  const task = { kind: 'task', id: 't', status: { state: 'working', final: true }, final: true, vendor: { a: 1 } }
  expect(translateResult(METHODS.get, '0.3', '1.0', task)).toEqual({ id: 't', status: { state: 'TASK_STATE_WORKING' } })
})

test('A2A versions - results: times are UTC with Z, and what is no time is left out', () => {
  const cases = [
    ['2026-11-22T10:00:00Z', '2026-11-22T10:00:00Z'],
    ['2026-11-22T10:00:00.123456789Z', '2026-11-22T10:00:00.123456789Z'],
    ['2026-11-22T10:00:00.123456+00:00', '2026-11-22T10:00:00.123456Z'],
    ['2026-11-22T10:00:00.123456', '2026-11-22T10:00:00.123456Z'],
    ['2026-11-22 10:00:00', '2026-11-22T10:00:00Z'],
    ['2026-11-22t10:00:00z', '2026-11-22T10:00:00Z'],
    ['2026-11-22T10:00:00,5Z', '2026-11-22T10:00:00.5Z'],
    ['2026-01-01T00:30:00.25+01:00', '2025-12-31T23:30:00.25Z'],
    ['2026-12-31T23:30:00-0530', '2027-01-01T05:00:00Z'],
    ['2026-11-22T10:00:00+02', '2026-11-22T08:00:00Z'],
    ['2026-11-22T10:00:00.1234567890123Z', '2026-11-22T10:00:00.123456789Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
    ['0001-01-01T00:00:00+01:00', undefined],
    ['0000-01-01T00:00:00Z', undefined],
    ['2026-02-30T00:00:00Z', undefined],
    ['2026-11-22T24:00:00Z', undefined],
    ['2026-11-22T10:00:60Z', undefined],
    ['2026-11-22T10:00:00+99:00', undefined],
    ['2026-11-22', undefined],
    ['yesterday', undefined],
    ['', undefined],
    [1_763_805_600, undefined],
    [{ seconds: 1 }, undefined],
  ]
  for (const [timestamp, expected] of cases) {
    const status = { state: 'working', timestamp }
    const task = translateResult(METHODS.get, '0.3', '1.0', { kind: 'task', id: 't', status })
    expect(task, JSON.stringify(timestamp)).toEqual({
      id: 't',
      status: { state: 'TASK_STATE_WORKING', ...(expected === undefined ? {} : { timestamp: expected }) },
    })
  }
})

test('A2A versions - results: 0.3 reads the first of the push notification configurations', () => {
  const method = METHODS['push-get']
  expect(translateResult(method, '1.0', '0.3', PUSH_10)).toEqual(PUSH_03)
  expect(translateResult(method, '1.0', '0.3', { configs: [PUSH_10, { taskId: 't1', url: 'u' }] })).toEqual(PUSH_03)
  for (const none of [{ configs: [] }, {}]) {
    expect(() => translateResult(method, '1.0', '0.3', none)).toThrow(
      expect.objectContaining({ code: -32603, message: 'the task has no push notification configuration' }),
    )
  }
})

test('A2A versions - results: 1.0 keeps the first authentication scheme of 0.3', () => {
  const config = { url: 'u', authentication: { schemes: ['Basic', 'Bearer'] } }
  const result = translateResult(METHODS['push-create'], '0.3', '1.0', { taskId: 't', pushNotificationConfig: config })
  expect(result).toEqual({ taskId: 't', url: 'u', authentication: { scheme: 'Basic' } })
})

test('A2A versions - results: one that is not what the method returns is refused, with the member', () => {
  const cases: [Operation, '1.0' | '0.3', unknown, string][] = [
    ['send', '1.0', 'done', 'result is "done"; it must be an object'],
    ['send', '1.0', null, 'result is missing; it must be an object'],
    ['send', '1.0', { statusUpdate: {} }, 'result is an object; it must be an object with one of "task", "message"'],
    ['send', '0.3', { kind: 'status-update' }, 'result.kind is "status-update"; it must be one of "task", "message"'],
    ['send', '1.0', { task: [] }, 'result.task is an array; it must be an object'],
    ['get', '0.3', { kind: 'task' }, 'result.id is missing; it must be a string that is not empty'],
    ['get', '0.3', { kind: 'task', id: 't' }, 'result.status is missing; it must be an object'],
    ['get', '1.0', { id: 't', history: [1] }, 'result.history[0] is 1; it must be an object'],
    ['stream', '0.3', { kind: 7 }, 'result.kind is 7; it must be a string'],
    ['push-list', '1.0', [], 'result is an array; it must be an object'],
    ['push-list', '0.3', {}, 'result is an object; it must be an array'],
    ['push-list', '0.3', [{}], 'result[0].taskId is missing; it must be a string that is not empty'],
  ]
  for (const [operation, from, result, message] of cases) {
    const to = from === '1.0' ? '0.3' : '1.0'
    expect(() => translateResult(METHODS[operation], from, to, result)).toThrow(new UntranslatableError(message))
  }
})

test('A2A versions - results: a result of the same version is returned as it is', () => {
  const result = { anything: [1] }
  for (const method of Object.values(METHODS)) {
    expect(translateResult(method, '1.0', '1.0', result)).toBe(result)
    expect(translateResult(method, '0.3', '0.3', result)).toBe(result)
  }
})

test('A2A versions - results: an extended card is left to the gateway', () => {
  const card = { name: 'agent', skills: [] }
  expect(translateResult(METHODS['extended-card'], '0.3', '1.0', card)).toBe(card)
})

function taskIn(state: unknown): unknown {
  return { id: 't', status: { state } }
}

interface Case {
  readonly name: string
  readonly v10: unknown
  readonly v03: unknown
}

/** Parts that both versions can hold: translated in both directions. */
const PARTS: readonly Case[] = [
  { name: 'text', v10: { text: 'hello' }, v03: { kind: 'text', text: 'hello' } },
  { name: 'empty text', v10: { text: '' }, v03: { kind: 'text', text: '' } },
  {
    name: 'text with metadata',
    v10: { text: 'hello', metadata: { lang: 'en' } },
    v03: { kind: 'text', text: 'hello', metadata: { lang: 'en' } },
  },
  {
    name: 'file by bytes',
    v10: { raw: 'aGVsbG8=', filename: 'hello.txt', mediaType: 'text/plain' },
    v03: { kind: 'file', file: { bytes: 'aGVsbG8=', name: 'hello.txt', mimeType: 'text/plain' } },
  },
  {
    name: 'file by URL',
    v10: { url: 'https://files.example/1', filename: 'one', mediaType: 'image/png', metadata: { page: 1 } },
    v03: {
      kind: 'file',
      file: { uri: 'https://files.example/1', name: 'one', mimeType: 'image/png' },
      metadata: { page: 1 },
    },
  },
  { name: 'file without a name', v10: { raw: '' }, v03: { kind: 'file', file: { bytes: '' } } },
  { name: 'data', v10: { data: { a: [1, null] } }, v03: { kind: 'data', data: { a: [1, null] } } },
  { name: 'a list as data', v10: { data: [1, 2] }, v03: wrapped([1, 2]) },
  { name: 'a string as data', v10: { data: 'x' }, v03: wrapped('x') },
  { name: 'a number as data', v10: { data: 0 }, v03: wrapped(0) },
  { name: 'false as data', v10: { data: false }, v03: wrapped(false) },
  { name: 'null as data', v10: { data: null }, v03: wrapped(null) },
  {
    name: 'a list as data, with metadata',
    v10: { data: [1], metadata: { unit: 'm' } },
    v03: { kind: 'data', data: { value: [1] }, metadata: { unit: 'm', data_part_compat: true } },
  },
]

for (const { name, v10, v03 } of PARTS) {
  test(`A2A versions - parts: ${name}`, () => {
    expect(to03(v10)).toEqual(v03)
    expect(to10(v03)).toEqual(v10)
  })
}

test('A2A versions - parts: 0.3 loses the media type and the file name of text and data', () => {
  expect(to03({ text: '# hi', mediaType: 'text/markdown', filename: 'hi.md' })).toEqual({ kind: 'text', text: '# hi' })
  expect(to03({ data: {}, mediaType: 'application/json', filename: 'x' })).toEqual({ kind: 'data', data: {} })
})

test('A2A versions - parts: members that the target version does not define are left out', () => {
  expect(to03({ text: 'x', kind: 'text', $case: 'text', extra: 1 })).toEqual({ kind: 'text', text: 'x' })
  expect(to10({ kind: 'text', text: 'x', extra: 1 })).toEqual({ text: 'x' })
  expect(to10({ kind: 'file', file: { uri: 'u', size: 3 }, extra: 1 })).toEqual({ url: 'u' })
})

test('A2A versions - parts: a part of 0.3 without its kind is read by its content', () => {
  expect(to10({ text: 'x' })).toEqual({ text: 'x' })
  expect(to10({ file: { bytes: 'eA==' } })).toEqual({ raw: 'eA==' })
  expect(to10({ data: { a: 1 } })).toEqual({ data: { a: 1 } })
})

test('A2A versions - parts: null counts as absent', () => {
  expect(to03({ text: 'x', raw: null, url: null, data: null, metadata: null })).toEqual({ kind: 'text', text: 'x' })
  expect(to10({ kind: 'file', file: { bytes: 'eA==', uri: null, name: null }, metadata: null })).toEqual({
    raw: 'eA==',
  })
})

test('A2A versions - parts: a part without one content is refused by name', () => {
  const one = 'result.message.parts[0] is an object; it must be an object with one of "text", "raw", "url" and "data"'
  expect(() => to03({})).toThrow(one)
  expect(() => to03({ text: 'x', url: 'u' })).toThrow(one)
  expect(() => to03({ text: 1 })).toThrow('result.message.parts[0].text is 1; it must be a string')
  expect(() => to10({ kind: 'video' })).toThrow('result.parts[0].kind is "video"; it must be "text", "file" or "data"')
  expect(() => to10({ kind: 'text' })).toThrow('result.parts[0].text is missing; it must be a string')
  expect(() => to10({ kind: 'file', file: {} })).toThrow(
    'result.parts[0].file is an object; it must be an object with "bytes" or "uri"',
  )
  expect(() => to10({ kind: 'data', data: [1] })).toThrow('result.parts[0].data is an array; it must be an object')
})

function wrapped(value: unknown): unknown {
  return { kind: 'data', data: { value }, metadata: { data_part_compat: true } }
}

function to03(part: unknown): unknown {
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [part] }
  const result = translateResult(METHODS.send, '1.0', '0.3', { message })
  expect(result).toMatchObject({ kind: 'message', messageId: 'm', role: 'agent' })
  return Reflect.get(Object(result), 'parts')[0]
}

function to10(part: unknown): unknown {
  const result = translateResult(METHODS.send, '0.3', '1.0', {
    kind: 'message',
    messageId: 'm',
    role: 'agent',
    parts: [part],
  })
  expect(result).toMatchObject({ message: { messageId: 'm', role: 'ROLE_AGENT' } })
  return Reflect.get(Object(Reflect.get(Object(result), 'message')), 'parts')[0]
}
