import type { Message as Message03, PushNotificationConfig as PushNotificationConfig03 } from 'a2a-js-sdk-v03'
import { expect, test } from 'vitest'

import type { Operation } from '../../src/wire/index.ts'
import { calledMethod, METHODS, translateRequest } from '../../src/wire/index.ts'
import { withProtoNames } from './arbitraries.ts'

const MESSAGE_10 = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
const MESSAGE_03: Message03 = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }

const PUSH_10 = { id: 'p', url: 'u', token: 'x', authentication: { scheme: 'Bearer', credentials: 'c' } }
const PUSH_03: PushNotificationConfig03 = {
  id: 'p',
  url: 'u',
  token: 'x',
  authentication: { schemes: ['Bearer'], credentials: 'c' },
}

const REQUESTS: readonly { name: string; operation: Operation; v10: object; v03: object | undefined }[] = [
  { name: 'a message', operation: 'send', v10: { message: MESSAGE_10 }, v03: { message: MESSAGE_03 } },
  {
    name: 'a message with everything',
    operation: 'stream',
    v10: {
      message: { ...MESSAGE_10, contextId: 'c', taskId: 't', referenceTaskIds: ['r'], extensions: ['e'] },
      configuration: {
        acceptedOutputModes: ['text/plain'],
        historyLength: 0,
        returnImmediately: true,
        taskPushNotificationConfig: PUSH_10,
      },
      metadata: { a: 1 },
    },
    v03: {
      message: { ...MESSAGE_03, contextId: 'c', taskId: 't', referenceTaskIds: ['r'], extensions: ['e'] },
      configuration: {
        acceptedOutputModes: ['text/plain'],
        historyLength: 0,
        blocking: false,
        pushNotificationConfig: PUSH_03,
      },
      metadata: { a: 1 },
    },
  },
  { name: 'a task', operation: 'get', v10: { id: 't', historyLength: 3 }, v03: { id: 't', historyLength: 3 } },
  { name: 'a cancellation', operation: 'cancel', v10: { id: 't', metadata: {} }, v03: { id: 't', metadata: {} } },
  { name: 'a subscription', operation: 'resubscribe', v10: { id: 't' }, v03: { id: 't' } },
  {
    name: 'a new push notification configuration',
    operation: 'push-create',
    v10: { taskId: 't', ...PUSH_10 },
    v03: { taskId: 't', pushNotificationConfig: PUSH_03 },
  },
  {
    name: 'a push notification configuration',
    operation: 'push-get',
    v10: { taskId: 't', id: 'p' },
    v03: { id: 't', pushNotificationConfigId: 'p' },
  },
  { name: 'push notification configurations', operation: 'push-list', v10: { taskId: 't' }, v03: { id: 't' } },
  {
    name: 'a deletion',
    operation: 'push-delete',
    v10: { taskId: 't', id: 'p' },
    v03: { id: 't', pushNotificationConfigId: 'p' },
  },
  { name: 'the extended card', operation: 'extended-card', v10: {}, v03: undefined },
]

for (const { name, operation, v10, v03 } of REQUESTS) {
  test(`A2A versions - requests: ${name}`, () => {
    expect(to03(operation, v10)).toEqual(v03)
    expect(to10(operation, v03)).toEqual(v10)
  })
}

test('A2A versions - requests: members with the names of Protocol Buffers are translated as those of JSON', () => {
  for (const { operation, v10, v03 } of REQUESTS) {
    expect([operation, to03(operation, renamed(v10))]).toEqual([operation, v03])
    expect([operation, to10(operation, v03 && renamed(v03))]).toEqual([operation, v10])
  }
  const named = { id: 't', push_notification_config_id: 'p' }
  expect(calledMethod(METHODS['push-get'], '0.3', '1.0', named)).toBe(METHODS['push-get'])
})

test('A2A versions - requests: the tenant is added for 1.0 and left out for 0.3', () => {
  for (const { operation, v10, v03 } of REQUESTS) {
    const params = v03 === undefined ? undefined : { ...v03 }
    expect(translateRequest(METHODS[operation], '0.3', '1.0', params, 'acme')).toEqual({ ...v10, tenant: 'acme' })
    expect(to03(operation, { ...v10, tenant: 'acme' })).toEqual(v03)
  }
})

test('A2A versions - requests: both versions wait for the result unless the caller says otherwise', () => {
  expect(to03('send', configured({}))).toMatchObject({ configuration: { blocking: true } })
  expect(to03('send', configured({ returnImmediately: false }))).toMatchObject({ configuration: { blocking: true } })
  const params = to10('send', { message: MESSAGE_03, configuration: { blocking: true } })
  expect(params).toMatchObject({ configuration: { returnImmediately: false } })
  expect(to10('send', { message: MESSAGE_03, configuration: {} })).toEqual(configured({}))
})

test('A2A versions - requests: a configured timeout does not reach an agent that would refuse it', () => {
  const configuration = { timeout: 5, blocking: true }
  const params = to10('send', { message: MESSAGE_03, configuration })
  expect(params).toEqual({ message: MESSAGE_10, configuration: { returnImmediately: false } })
})

test('A2A versions - requests: a context next to the message moves into it', () => {
  expect(to10('send', { message: MESSAGE_03, contextId: 'c' })).toEqual({ message: { ...MESSAGE_10, contextId: 'c' } })
  const own = { message: { ...MESSAGE_03, contextId: 'own' }, contextId: 'c' }
  expect(to10('send', own)).toEqual({ message: { ...MESSAGE_10, contextId: 'own' } })
  expect(to03('send', { message: MESSAGE_10, contextId: 'c' })).toEqual({ message: MESSAGE_03 })
})

test('A2A versions - requests: 0.3 loses pages of a list, 1.0 loses metadata of a query', () => {
  expect(to03('push-list', { taskId: 't', pageSize: 5, pageToken: 'x' })).toEqual({ id: 't' })
  for (const operation of ['get', 'resubscribe'] as const) {
    expect(to10(operation, { id: 't', metadata: { a: 1 } })).toEqual({ id: 't' })
  }
})

test('A2A versions - requests: a configuration without its id is read from the list of 1.0', () => {
  const method = METHODS['push-get']
  expect(calledMethod(method, '0.3', '1.0', { id: 't' })).toBe(METHODS['push-list'])
  expect(to10('push-get', { id: 't' })).toEqual({ taskId: 't' })
  expect(calledMethod(method, '0.3', '1.0', { id: 't', pushNotificationConfigId: 'p' })).toBe(method)
  expect(calledMethod(method, '1.0', '0.3', { taskId: 't' })).toBe(method)
  expect(calledMethod(METHODS.get, '0.3', '1.0', { id: 't' })).toBe(METHODS.get)
})

test('A2A versions - requests: an agent of 0.3 has no list of tasks', () => {
  expect(() => to03('list', {})).toThrow(
    expect.objectContaining({
      code: -32_004,
      message: 'unsupported operation: ListTasks has no equivalent in A2A 0.3, which the agent speaks',
      data: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'UNSUPPORTED_OPERATION',
          domain: 'a2a-protocol.org',
        },
      ],
    }),
  )
})

test('A2A versions - requests: an invalid value is -32602, with the member', () => {
  const cases: [Operation, '1.0' | '0.3', object | undefined, string][] = [
    ['send', '1.0', undefined, 'params.message is missing; it must be an object'],
    ['send', '0.3', { message: 'hi' }, 'params.message is "hi"; it must be an object'],
    [
      'send',
      '0.3',
      { message: { ...MESSAGE_03, messageId: '' } },
      'params.message.messageId is ""; it must be a string that is not empty',
    ],
    [
      'send',
      '0.3',
      { message: { ...MESSAGE_03, role: 'ROLE_USER' } },
      'params.message.role is "ROLE_USER"; it must be "user" or "agent"',
    ],
    [
      'send',
      '1.0',
      { message: { ...MESSAGE_10, role: undefined } },
      'params.message.role is missing; it must be "ROLE_USER" or "ROLE_AGENT"',
    ],
    [
      'send',
      '0.3',
      { message: { ...MESSAGE_03, parts: {} } },
      'params.message.parts is an object; it must be an array',
    ],
    [
      'send',
      '0.3',
      { message: { ...MESSAGE_03, extensions: ['a', 1] } },
      'params.message.extensions is an array; it must be an array of strings',
    ],
    [
      'stream',
      '0.3',
      { message: MESSAGE_03, configuration: { blocking: 'yes' } },
      'params.configuration.blocking is "yes"; it must be true or false',
    ],
    [
      'stream',
      '0.3',
      { message: MESSAGE_03, configuration: { pushNotificationConfig: {} } },
      'params.configuration.pushNotificationConfig.url is missing; it must be a string that is not empty',
    ],
    ['send', '0.3', { message: MESSAGE_03, contextId: 1 }, 'params.contextId is 1; it must be a string'],
    ['get', '1.0', { id: 't', historyLength: 1.5 }, 'params.historyLength is 1.5; it must be an integer'],
    ['get', '1.0', { id: 'x'.repeat(9), historyLength: 'y'.repeat(99) }, `params.historyLength is "${'y'.repeat(64)}"`],
    ['cancel', '0.3', {}, 'params.id is missing; it must be a string that is not empty'],
    ['cancel', '0.3', { id: 't', metadata: [] }, 'params.metadata is an array; it must be an object'],
    ['push-create', '0.3', { taskId: 't' }, 'params.pushNotificationConfig is missing; it must be an object'],
    ['push-delete', '1.0', { taskId: 't' }, 'params.id is missing; it must be a string that is not empty'],
  ]
  for (const [operation, from, params, message] of cases) {
    const translate = from === '1.0' ? to03 : to10
    expect(() => translate(operation, params)).toThrow(
      expect.objectContaining({ code: -32_602, message: expect.stringContaining(`invalid params: ${message}`) }),
    )
  }
})

test('A2A versions - requests: params of the same version are returned as they are', () => {
  const params = { anything: [1] }
  for (const method of Object.values(METHODS)) {
    expect(translateRequest(method, '1.0', '1.0', params, 'acme')).toBe(params)
    expect(translateRequest(method, '0.3', '0.3', params)).toBe(params)
  }
})

function configured(configuration: object): object {
  return { message: MESSAGE_10, configuration }
}

function to03(operation: Operation, params: object | undefined): unknown {
  return translateRequest(METHODS[operation], '1.0', '0.3', params === undefined ? undefined : { ...params })
}

function to10(operation: Operation, params: object | undefined): unknown {
  return translateRequest(METHODS[operation], '0.3', '1.0', params === undefined ? undefined : { ...params })
}

function renamed(params: object): object {
  return withProtoNames(params) as object
}
