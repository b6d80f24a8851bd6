import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { onTestFinished } from 'vitest'

import type { AgentRegistry, RegistryCaller, RegistryOptions } from '../src/index.ts'
import { openRegistry } from '../src/index.ts'
import type { Faults } from './faults.ts'

export const ALICE: RegistryCaller = { clientId: 'alice' }
export const BOB: RegistryCaller = { clientId: 'bob' }
export const ADMIN: RegistryCaller = { clientId: 'root', admin: true }

/** A valid card, with what the test says of it. */
export function card(agentId: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { agent_id: agentId, name: `The ${agentId}`, url: 'http://127.0.0.1:9/agent', ...more }
}

/** A valid card of an agent without a url, which leases its requests. */
export function pullCard(agentId: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { agent_id: agentId, name: `The ${agentId}`, a2a: { pull: true }, ...more }
}

/** What happened at a registry, as text: `register success a1`. */
export interface Watched {
  readonly operations: string[]
  readonly failures: string[]
  readonly hooks: NonNullable<RegistryOptions['hooks']>
}

export function watched(): Watched {
  const operations: string[] = []
  const failures: string[] = []
  return {
    operations,
    failures,
    hooks: {
      operation: (op, status, { agentId, code }) => {
        operations.push([op, status, agentId, code].filter((part) => part !== undefined).join(' '))
      },
      failed: (error) => {
        failures.push(error instanceof Error ? error.message : String(error))
      },
    },
  }
}

export interface Bench {
  readonly system: BrokerHandle
  /** Another registry on the same engine: another node. */
  readonly node: (options?: RegistryOptions, faults?: Faults) => Promise<AgentRegistry>
  /** Closes everything, and opens the store again. */
  readonly restart: () => Promise<void>
}

/** A real embedded engine in a temporary folder, gone when the test is over. */
export async function openBench(): Promise<Bench> {
  const path = testFolder()
  let engine = await openEmbeddedEngine({ path })
  let { system } = createBroker(engine)
  let registries: AgentRegistry[] = []
  const close = async (): Promise<void> => {
    await Promise.all(registries.map((registry) => registry.close()))
    registries = []
    await engine.close()
  }
  onTestFinished(close)
  return {
    get system() {
      return system
    },
    async node(options, faults) {
      const own = faults === undefined ? system : createBroker(faults.wrap(engine)).system
      const registry = await openRegistry(own, options)
      registries.push(registry)
      return registry
    },
    async restart() {
      await close()
      engine = await openEmbeddedEngine({ path })
      system = createBroker(engine).system
    },
  }
}
