import { expect, test } from 'vitest'

import { callTool } from './support/mcp.ts'
import { OFFICIAL_CLIENTS } from './support/official-clients.ts'
import { serve } from './support/server.ts'

test.each(OFFICIAL_CLIENTS)('M25 - $name leases and acknowledges with CONNECTORSMCP_LEASES', async ({ connect }) => {
  const { http } = await serve({ connectors: { mcp: { leases: true } } })
  const client = await connect(`${http.url}/mcp`)
  expect(await client.tools()).toEqual(expect.arrayContaining(['queue_ack', 'queue_nack', 'queue_extend']))
  await callTool(http.url, 'queue_send', { channel: 'work', body: 'x' })
  const leased = await client.call('queue_receive', { channel: 'work', max_messages: 1, lease_seconds: 60 })
  const [{ receipt }] = JSON.parse(leased.text) as [{ receipt: string }]
  const extended = await client.call('queue_extend', { receipts: [receipt], lease_seconds: 120 })
  expect(extended).toEqual({ text: '1 of 1 messages leased for 120 s from now.', isError: false })
  const acknowledged = await client.call('queue_ack', { receipts: [receipt] })
  expect(acknowledged).toEqual({ text: '1 of 1 messages acknowledged and removed.', isError: false })
})
