import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/guides/clustering.md'), 'utf8')

// While NATS is away /health is 500 on every node: as a liveness probe it would have them all restarted, over and over.
test('clustering page - the manifest asks a node whether it is ready, and kills it only when its process is dead', () => {
  expect(PAGE).toMatch(/readinessProbe: \{ httpGet: \{ path: \/ready, /)
  expect(PAGE).toMatch(/livenessProbe: \{ httpGet: \{ path: \/ping, /)
})
