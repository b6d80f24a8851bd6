import type { Server } from './server.ts'

const SHOPS = ['north', 'south', 'west'] as const

/** Channels and messages as a shop has them: queues of different depth, dead letters, events, stored events, failed calls. */
export async function fill(server: Server): Promise<void> {
  for (let number = 1; number <= 40; number++) {
    const shop = SHOPS[number % SHOPS.length] ?? 'north'
    await server.tool(
      'queue_send',
      {
        channel: `orders.${shop}`,
        body: JSON.stringify({
          order: 7_000 + number,
          shop,
          items: [{ sku: `T-${number}`, count: (number % 4) + 1 }],
          total: number * 3.5,
        }),
        tags: { shop, priority: number % 5 === 0 ? 'high' : 'normal' },
      },
      `shop-${shop}`,
    )
  }
  for (let number = 1; number <= 12; number++) {
    await server.tool(
      'queue_send',
      {
        channel: 'payments',
        body: JSON.stringify({ payment: number, card: 'declined' }),
        max_receive_count: 1,
        dead_letter_queue: 'payments.dead',
      },
      'checkout',
    )
  }
  for (let number = 1; number <= 5; number++) {
    await server.tool(
      'queue_send',
      {
        channel: 'invoices',
        body: `<invoice number="${number}"/>`,
        max_receive_count: 1,
        dead_letter_queue: 'payments.dead',
      },
      'billing',
    )
  }
  await fail(server, 'payments', 9, 'payment-worker')
  await fail(server, 'invoices', 4, 'printer')
  for (let number = 1; number <= 30; number++) {
    await server.tool(
      'events_publish',
      { channel: `prices.${SHOPS[number % 3]}`, body: String(100 + number) },
      'pricing',
    )
    await server.tool(
      'events_store_publish',
      {
        channel: 'ledger',
        body: JSON.stringify({ entry: number, amount: number * 12.4, currency: 'EUR' }),
        tags: { account: `A-${number % 4}` },
      },
      'billing',
    )
  }
  for (let number = 0; number < 4; number++) {
    await server.tool('queue_receive', { channel: 'orders.north', max_messages: 2, wait_timeout_seconds: 1 }, 'packing')
  }
}

interface Received {
  readonly data: { readonly messages: readonly { readonly receipt: string }[] }
}

/** Receives messages and rejects them: each may be received once, so they become dead letters. */
async function fail(server: Server, channel: string, messages: number, client: string): Promise<void> {
  const init = { method: 'POST', headers: server.headersOf(client) }
  const url = `${server.http}/ce/queue/receive?channel=${channel}&max_messages=${messages}&visibility_seconds=60`
  const answer = await fetch(url, init)
  const { data } = (await answer.json()) as Received
  const receipts = data.messages.map(({ receipt }) => `receipt=${encodeURIComponent(receipt)}`).join('&')
  const rejected = await fetch(`${server.http}/ce/queue/nack?${receipts}`, init)
  if (!rejected.ok) throw new Error(`nack: ${rejected.status} ${await rejected.text()}`)
}
