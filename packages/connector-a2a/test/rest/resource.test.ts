import { expect, test } from 'vitest'

import { restResource } from '../../src/rest/rest-resource.ts'

const found = (path: string): unknown => {
  const resource = restResource(path)
  return resource && [resource.agentId, Object.fromEntries(resource.operations), resource.members]
}

test.each([
  ['a1/message:send', ['a1', { POST: 'send' }, {}]],
  [`a1/message${encodeURIComponent(':')}send`, ['a1', { POST: 'send' }, {}]],
  ['a1/message:stream', ['a1', { POST: 'stream' }, {}]],
  ['a1/tasks', ['a1', { GET: 'list' }, {}]],
  ['a1/tasks/t', ['a1', { GET: 'get' }, { id: 't' }]],
  [`a1/tasks/${encodeURIComponent('a/b:cancel')}`, ['a1', { GET: 'get' }, { id: 'a/b:cancel' }]],
  ['a1/tasks/urn:x:1', ['a1', { GET: 'get' }, { id: 'urn:x:1' }]],
  ['a1/tasks/:cancel', ['a1', { GET: 'get' }, { id: ':cancel' }]],
  ['a1/tasks/urn:x:1:cancel', ['a1', { POST: 'cancel' }, { id: 'urn:x:1' }]],
  ['a1/tasks/t:subscribe', ['a1', { GET: 'resubscribe', POST: 'resubscribe' }, { id: 't' }]],
  ['a1/tasks/t/pushNotificationConfigs', ['a1', { GET: 'push-list', POST: 'push-create' }, { taskId: 't' }]],
  [
    'a1/tasks/t/pushNotificationConfigs/c%20d',
    ['a1', { GET: 'push-get', DELETE: 'push-delete' }, { taskId: 't', id: 'c d' }],
  ],
  ['a1/extendedAgentCard', ['a1', { GET: 'extended-card' }, {}]],
  ['a1/acme%2Feu/message:send', ['a1', { POST: 'send' }, { tenant: 'acme/eu' }]],
  ['a1/acme/tasks/t:cancel', ['a1', { POST: 'cancel' }, { tenant: 'acme', id: 't' }]],
  ['a1/acme/tasks/t/pushNotificationConfigs', expect.arrayContaining([{ tenant: 'acme', taskId: 't' }])],
  // Without a tenant counts first.
  ['a1/tasks/tasks', ['a1', { GET: 'get' }, { id: 'tasks' }]],
])('rest - resource: %s', (path, expected) => {
  expect(found(path)).toEqual(expected)
})

test.each([
  '',
  'a1',
  'a1/',
  'a1/message:send/',
  'a1//message:send',
  'a1/message:other',
  'a1/v1/message:send/x',
  'a1/a/b/tasks',
  'a1/tasks/t/other',
  'a1/tasks/t/pushNotificationConfigs/c/d',
  'a1/tasks/%zz',
  'a1/%zz/tasks',
  'a1/stream',
  'a1/v0.3',
  'a1/.well-known/agent-card.json',
])('rest - resource: %s is none', (path) => {
  expect(restResource(path)).toBeUndefined()
})
