import { parseRoutingTable, Routing } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { bearer, manage, tokens } from './management-server.ts'

test('operator - the roles of the caller contain those below its highest', async () => {
  const { get } = await manage({ authenticator: tokens() })
  expect((await get('/api/operator', bearer('eve:ReadWrite'))).data).toEqual({
    client: 'eve',
    roles: ['ReadOnly', 'ReadWrite'],
  })
  expect((await get('/api/operator', bearer('eve'))).status).toBe(403)
})

test('operator - without authentication every caller is Admin', async () => {
  const { get } = await manage()
  expect((await get('/api/operator')).data.roles).toEqual(['ReadOnly', 'ReadWrite', 'Admin'])
})

test('agent card - the card of a registered agent, with fields that the registry does not know', async () => {
  const card = { agent_id: 'writer', name: 'Writer', color: 'blue', skills: [{ id: 'write', name: 'Write' }] }
  const { get } = await manage({
    agents: { list: () => [], deregister: async () => false, card: (id) => (id === 'writer' ? card : undefined) },
  })
  expect((await get('/api/agent_card?agent_id=writer')).data).toEqual({ agent_id: 'writer', card })
  expect((await get('/api/agent_card?agent_id=nobody')).data).toMatchObject({ code: 'AGENT_NOT_FOUND' })
})

test('routing - the rules in force, with their targets', async () => {
  const routing = new Routing()
  const { get } = await manage({ services: { routing } })
  expect((await get('/api/routing')).data).toEqual({ rules: [] })
  routing.replace(
    parseRoutingTable([
      { key: 'orders\\..+', routes: 'events_store:archive;queues:work.{ce_shop}' },
      { key: "type = 'paid'", keyType: 'cesql', routes: 'events:paid' },
    ]),
  )
  expect((await get('/api/routing')).data.rules).toEqual([
    {
      index: 0,
      key: 'orders\\..+',
      key_type: 'regex',
      targets: [
        { type: 'events_store', channel: 'archive' },
        { type: 'queues', channel: 'work.{ce_shop}' },
      ],
    },
    { index: 1, key: "type = 'paid'", key_type: 'cesql', targets: [{ type: 'events', channel: 'paid' }] },
  ])
})
