import { expect, test } from 'vitest'

import { findMethod, METHODS, translateError, translateHeaders } from '../../src/wire/index.ts'

const NAMES = [
  ['send', 'SendMessage', 'message/send'],
  ['stream', 'SendStreamingMessage', 'message/stream'],
  ['get', 'GetTask', 'tasks/get'],
  ['list', 'ListTasks', undefined],
  ['cancel', 'CancelTask', 'tasks/cancel'],
  ['resubscribe', 'SubscribeToTask', 'tasks/resubscribe'],
  ['push-create', 'CreateTaskPushNotificationConfig', 'tasks/pushNotificationConfig/set'],
  ['push-get', 'GetTaskPushNotificationConfig', 'tasks/pushNotificationConfig/get'],
  ['push-list', 'ListTaskPushNotificationConfigs', 'tasks/pushNotificationConfig/list'],
  ['push-delete', 'DeleteTaskPushNotificationConfig', 'tasks/pushNotificationConfig/delete'],
  ['extended-card', 'GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard'],
] as const

test('A2A versions - every method has its names in both versions', () => {
  expect(Object.values(METHODS).map(({ operation, names }) => [operation, names['1.0'], names['0.3']])).toEqual(NAMES)
  for (const [operation, name10, name03] of NAMES) {
    const method = METHODS[operation]
    expect(findMethod(name10)).toEqual({ method, version: '1.0' })
    expect(findMethod(name03 ?? '')).toEqual(name03 === undefined ? undefined : { method, version: '0.3' })
  }
})

test('A2A versions - two methods answer with event streams', () => {
  const streams = Object.values(METHODS).filter((method) => method.streams)
  expect(streams.map(({ operation }) => operation)).toEqual(['stream', 'resubscribe'])
})

test('A2A versions - a name that is no method of A2A is not found', () => {
  for (const name of ['', 'sendMessage', 'tasks/send', 'tasks/list', '__proto__', 'constructor']) {
    expect(findMethod(name)).toBeUndefined()
  }
})

const INFO = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND', domain: 'd' }

function info(reason: string): object {
  return { '@type': INFO['@type'], reason, domain: 'a2a-protocol.org' }
}

test('A2A versions - errors: the codes that both versions define stay', () => {
  for (const code of [
    -32_700, -32_600, -32_601, -32_602, -32_603, -32_001, -32_002, -32_003, -32_004, -32_005, -32_006, -32_007, 7,
  ]) {
    const error = { code, message: 'no' }
    expect(translateError('1.0', '0.3', error)).toEqual(error)
    expect(translateError('0.3', '1.0', error)).toMatchObject(error)
  }
})

test('A2A versions - errors: errors that A2A defines get their reason in 1.0; other errors are unchanged', () => {
  const struct = { '@type': 'type.googleapis.com/google.protobuf.Struct', value: { id: 't' } }
  const cases: [code: number, data03: unknown, data10: unknown][] = [
    [-32_001, undefined, [info('TASK_NOT_FOUND')]],
    [-32_004, { id: 't' }, [info('UNSUPPORTED_OPERATION'), struct]],
    [-32_007, null, [info('EXTENDED_AGENT_CARD_NOT_CONFIGURED')]],
    [-32_001, [INFO], [INFO]],
    [-32_603, undefined, undefined],
    [-32_050, undefined, undefined],
    [7, undefined, undefined],
  ]
  for (const [code, data, data10] of cases) {
    expect(translateError('0.3', '1.0', { code, message: 'no', data })).toEqual({ code, message: 'no', data: data10 })
  }
})

test('A2A versions - errors: codes that 0.3 does not define become the closest that it does', () => {
  expect(translateError('1.0', '0.3', { code: -32_008, message: 'm' })).toEqual({ code: -32_004, message: 'm' })
  expect(translateError('1.0', '0.3', { code: -32_009, message: 'm' })).toEqual({ code: -32_600, message: 'm' })
})

test('A2A versions - errors: data of 0.3 is a list of typed details in 1.0, and the same data on the way back', () => {
  const cases: [unknown, unknown][] = [
    [{ a: 1 }, [{ '@type': 'type.googleapis.com/google.protobuf.Struct', value: { a: 1 } }]],
    ['text', [{ '@type': 'type.googleapis.com/google.protobuf.Value', value: 'text' }]],
    [[1, 2], [{ '@type': 'type.googleapis.com/google.protobuf.Value', value: [1, 2] }]],
    [[INFO], [INFO]],
    [undefined, undefined],
  ]
  for (const [data03, data10] of cases) {
    const error03 = { code: 1, message: 'm', data: data03 }
    const error10 = { code: 1, message: 'm', data: data10 }
    expect(translateError('0.3', '1.0', error03)).toEqual(error10)
    expect(translateError('1.0', '0.3', error10)).toEqual(error03)
  }
  expect(translateError('0.3', '1.0', { code: 1, message: 'm', data: null, extra: 1 })).toEqual({
    code: 1,
    message: 'm',
  })
})

test('A2A versions - errors: an error of the same version is returned as it is', () => {
  const error = { code: -32_009, message: 'm', data: { a: 1 }, extra: 1 }
  expect(translateError('0.3', '0.3', error)).toBe(error)
})

test('A2A versions - headers: extensions have the header of the target, and the version is its own', () => {
  const headers = { 'A2A-Version': '1.0', 'A2A-Extensions': 'e1, e2', Traceparent: 't' }
  expect(translateHeaders('1.0', '0.3', headers)).toEqual({
    'a2a-version': '0.3',
    'x-a2a-extensions': 'e1, e2',
    traceparent: 't',
  })
  expect(translateHeaders('0.3', '1.0', { 'x-a2a-extensions': 'e1' })).toEqual({
    'a2a-version': '1.0',
    'a2a-extensions': 'e1',
  })
})

test('A2A versions - headers: extensions of both header names are kept', () => {
  const both = { 'a2a-extensions': 'e1', 'x-a2a-extensions': 'e2' }
  expect(translateHeaders('1.0', '0.3', both)).toMatchObject({ 'x-a2a-extensions': 'e1, e2' })
  const same = { 'a2a-extensions': 'e1', 'x-a2a-extensions': 'e1' }
  expect(translateHeaders('0.3', '1.0', same)).toEqual({ 'a2a-version': '1.0', 'a2a-extensions': 'e1' })
})

test('A2A versions - headers: between equal versions only the version header is set', () => {
  expect(translateHeaders('1.0', '1.0', { 'x-a2a-extensions': 'e1' })).toEqual({
    'a2a-version': '1.0',
    'x-a2a-extensions': 'e1',
  })
})
