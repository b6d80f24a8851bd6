import process from 'node:process'

import type { Registry } from 'prom-client'
import { Gauge } from 'prom-client'

export interface NodeParts {
  readonly version: string
  readonly engine: string
  /** Returns the state that `/ready` answers with. */
  readonly state: () => Promise<{ readonly ready: boolean }>
}

/** Creates the series of the build, and of the state that the probe `/ready` reports. */
export function nodeMetrics(registry: Registry, { version, engine, state }: NodeParts): void {
  const registers = [registry]
  const build = new Gauge({
    name: 'broker_build_info',
    help: 'Always 1; the labels are the versions of the server and of Node, and the engine.',
    labelNames: ['version', 'node', 'engine'],
    registers,
  })
  build.set({ version, node: process.versions.node, engine }, 1)
  const ready = new Gauge({
    name: 'broker_ready',
    help: '1 while the node accepts calls and every check of /ready passes, else 0.',
    registers,
    async collect() {
      ready.set((await state()).ready ? 1 : 0)
    },
  })
}
