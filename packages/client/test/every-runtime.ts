/**
 * A program that every runtime of the client can run, as text: a function of `connect` and of the server's URL. Works
 * on a queue and for a pull agent, reads live and stored events, answers and asks.
 */
export const PROGRAM = `async (connect, url) => {
  const sb = connect(url)
  const jobs = sb.queue('jobs')
  const sent = [await jobs.send({ n: 1 }, { id: 'a' }), await jobs.send({ n: 1 }, { id: 'a' })]
  const done = []
  const pool = jobs.work({ concurrency: 2, lease: '5s', backoff: () => '1s' }, async (job, { receives }) => {
    if (receives === 1) throw new Error('the first receive fails')
    done.push(job)
  })
  const live = []
  await sb.events('shop.*').on(({ data }) => live.push(data)).ready
  await sb.events('shop.eu').publish('hello')
  await sb.answer('queries', 'prices', ({ sku }) => ({ sku, price: 9.5 })).ready
  const price = await sb.query('prices', { sku: 'a1' }, { timeout: '5s' })
  const log = sb.store('log')
  await log.append(new Uint8Array([0, 255]))
  await log.append({ total: 12 })
  const stored = []
  for await (const { data } of log.read({ from: 'first' })) stored.push(data instanceof Uint8Array ? [...data] : data)
  const failure = await sb.queue('_AGENTS_.x').send(1).catch((error) => error.code)
  sb.agents.work('shouter', async function* ({ text }) { yield text.toUpperCase() }, { card: { name: 'Shouter' } })
  let shouted
  while (shouted !== 'HI') {
    // The first message may come before the registration, or before the first lease.
    shouted = await sb.agents('shouter').send('hi').then(({ text }) => text, () => '')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  while (done.length === 0 || live.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  await pool.drain()
  await sb.close()
  return { duplicates: sent.map(({ duplicate }) => duplicate), done, live, price, stored, failure, shouted }
}`

/** The result of {@link PROGRAM}. */
export const RESULT = {
  duplicates: [false, true],
  done: [{ n: 1 }],
  live: ['hello'],
  price: { sku: 'a1', price: 9.5 },
  stored: [[0, 255], { total: 12 }],
  failure: 'CHANNEL_RESERVED',
  shouted: 'HI',
}
