import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import { onTestFinished } from 'vitest'

import { postJson } from '../support/agent.ts'

export const AGENT = 'replicated'

/** The time between heartbeats, in ms. */
const BEAT_MS = 300

/** A process that serves the agent, and its registration. */
export class Replica {
  readonly #base: string
  readonly #name: object
  readonly #child: ChildProcess
  readonly #beat: NodeJS.Timeout

  private constructor(base: string, name: object, child: ChildProcess) {
    this.#base = base
    this.#name = name
    this.#child = child
    this.#beat = setInterval(() => void postJson(`${base}/agents/heartbeat`, name).catch(() => {}), BEAT_MS)
  }

  /** Starts a process, and registers it when it serves. */
  static async start(base: string, instance: string): Promise<Replica> {
    const child = fork(fileURLToPath(new URL('replica-main.ts', import.meta.url)), [instance], { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const [url] = (await once(child, 'message')) as [string]
    const name = { agent_id: AGENT, instance_id: instance, url }
    const answer = await postJson(`${base}/agents/register`, { ...name, name: 'Replicated' })
    if (answer.status !== 200) throw new Error(`not registered: ${await answer.text()}`)
    return new Replica(base, name, child)
  }

  /** Ends the process as a crash does. It stays registered. */
  async crash(): Promise<void> {
    clearInterval(this.#beat)
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  /** Leaves, lets the calls under way end, and ends the process. */
  async leave(): Promise<void> {
    clearInterval(this.#beat)
    const answer = await postJson(`${this.#base}/agents/deregister`, this.#name)
    if (answer.status !== 200) throw new Error(`not deregistered: ${await answer.text()}`)
    const exited = once(this.#child, 'exit')
    this.#child.send('drain')
    await exited
  }
}
