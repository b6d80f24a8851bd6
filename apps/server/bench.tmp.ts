import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { mkdtempSync, rmSync, openSync, writeSync, fdatasync, write, statSync } from 'node:fs'
import { promisify } from 'node:util'
const what = process.argv[2] ?? 'enqueue'
const N = Number(process.argv[3] ?? 100_000)
const P = 64
const body = new Uint8Array(1024).fill(65)
const msg = () => ({
  id: crypto.randomUUID(),
  clientId: 'me',
  body,
  metadata: '',
  tags: {},
  delayMs: 0,
  expirationMs: 0,
  maxReceiveCount: 0,
  deadLetterQueue: '',
})
async function raw(n: number) {
  // async raw log: group commit of append + fdatasync
  const dir = mkdtempSync('/tmp/sbx-')
  const fd = openSync(dir + '/raw', 'w')
  const w = promisify(write) as any,
    s = promisify(fdatasync)
  let waiting: { b: Uint8Array; r: () => void }[] = []
  let busy = false
  async function pump() {
    busy = true
    while (waiting.length) {
      const g = waiting
      waiting = []
      await w(fd, Buffer.concat(g.map((x) => x.b)))
      await s(fd)
      for (const x of g) x.r()
    }
    busy = false
  }
  const append = (b: Uint8Array) =>
    new Promise<void>((r) => {
      waiting.push({ b, r })
      if (!busy) pump()
    })
  const t = performance.now()
  let i = 0
  await Promise.all(
    Array.from({ length: P }, async () => {
      while (i < n) {
        i++
        const m = msg()
        await append(m.body)
      }
    }),
  )
  const rate = (n / (performance.now() - t)) * 1000
  rmSync(dir, { recursive: true })
  return rate
}
const dir = mkdtempSync('/tmp/sbx-')
let commits = 0
const e = await openEmbeddedEngine({ path: dir, onCommit: () => commits++ })
async function enqueue(q: string, n: number, p = P) {
  const t = performance.now()
  let i = 0
  await Promise.all(
    Array.from({ length: p }, async () => {
      while (i < n) {
        i++
        await e.queues.send(q, msg())
      }
    }),
  )
  return (n / (performance.now() - t)) * 1000
}
async function drain(q: string, n: number, p = P, batch = 1) {
  const t = performance.now()
  let got = 0
  await Promise.all(
    Array.from({ length: p }, async () => {
      for (;;) {
        const d = await e.queues.receive(q, { maxMessages: batch, waitMs: 0, leaseMs: 30000, clientId: 'c' })
        if (!d.length || got >= n) return
        got += d.length
        await e.queues.ack(
          d.map((x) => x.receipt),
          'c',
        )
      }
    }),
  )
  return (got / (performance.now() - t)) * 1000
}
const f = (x: number) => Math.round(x).toLocaleString('en')
if (what === 'prof') {
  const cpu = () => {
    const c = process.cpuUsage()
    return c.user + c.system
  }
  for (let r = 0; r < 5; r++) {
    let c = cpu()
    const a0 = await raw(N)
    const ca = cpu() - c
    c = cpu()
    const a = await enqueue('z' + r, N)
    const b = cpu() - c
    c = cpu()
    const d = await drain('z' + r, N)
    console.log(
      'raw',
      f(a0),
      (ca / N).toFixed(1),
      'enq',
      f(a),
      'cpu us/op',
      (b / N).toFixed(1),
      'drain',
      f(d),
      ((cpu() - c) / N).toFixed(1),
    )
  }
}
if (what === 'enqueue')
  for (let r = 0; r < 4; r++) {
    commits = 0
    const a = await raw(N)
    const b = await enqueue('q' + r, N)
    const c = await drain('q' + r, N)
    const cm = commits
    const c10 = (await enqueue('p' + r, N), await drain('p' + r, N, P, 10))
    console.log(
      'raw',
      f(a),
      'enqueue',
      f(b),
      (b / a).toFixed(2),
      'commits',
      cm,
      'recv+ack',
      f(c),
      (c / b).toFixed(2),
      'x10',
      f(c10),
    )
  }
if (what === 'depth') {
  const a0 = await enqueue('w', 50000)
  const b0 = await drain('w', 50000)
  const rss0 = process.memoryUsage.rss() / 1e6
  const a = await enqueue('q', N, 256)
  ;(globalThis as any).gc?.()
  await new Promise((r) => setTimeout(r, 2000))
  console.log('fill', f(a), 'rss', rss0.toFixed(0), (process.memoryUsage.rss() / 1e6).toFixed(0))
  const a1 = await enqueue('q', 50000)
  const b1 = await drain('q', 50000)
  console.log('enq', f(a0), f(a1), 'recv', f(b0), f(b1))
  const t0 = performance.now()
  await e.close()
  console.log('close', performance.now() - t0)
  const t = performance.now()
  const x = await openEmbeddedEngine({ path: dir })
  console.log('open', performance.now() - t)
  await x.close()
}
if (what === 'latency') {
  const lat: number[] = []
  let stop = false
  const sentAt = new Map<string, number>()
  const rec = async () => {
    while (!stop) {
      const d = await e.queues.receive('q', { maxMessages: 1, waitMs: 1000, leaseMs: 30000, clientId: 'c' })
      const now = performance.now()
      for (const x of d) lat.push(now - sentAt.get(x.message.id)!)
      if (d.length)
        void e.queues.ack(
          d.map((x) => x.receipt),
          'c',
        )
    }
  }
  const rs = Array.from({ length: 8 }, rec)
  const t0 = performance.now()
  for (let i = 0; i < 10000; i++) {
    const due = t0 + i
    while (performance.now() < due) await new Promise((r) => setTimeout(r, 1))
    const m = msg()
    sentAt.set(m.id, performance.now())
    void e.queues.send('q', m)
  }
  await new Promise((r) => setTimeout(r, 500))
  stop = true
  await Promise.all(rs)
  lat.sort((a, b) => a - b)
  console.log(
    'latency p50',
    lat[lat.length >> 1],
    'p99',
    lat[Math.floor(lat.length * 0.99)],
    'max',
    lat.at(-1),
    lat.length,
  )
}
if (what === 'fanout') {
  let n = 0
  for (let i = 0; i < 500; i++)
    await e.logs.subscribe('l', { from: 'new' }, {}, () => {
      n++
    })
  const c0 = process.cpuUsage()
  const t = performance.now()
  let i = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (i < 2000) {
        i++
        await e.logs.append('l', msg())
      }
    }),
  )
  while (n < 1e6) await new Promise((r) => setTimeout(r, 1))
  const c = process.cpuUsage(c0)
  console.log('cpu µs/delivery', (c.user + c.system) / n, 'ms', performance.now() - t)
}
await e.close()
rmSync(dir, { recursive: true })
