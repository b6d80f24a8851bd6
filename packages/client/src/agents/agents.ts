import type { ClientContext } from '../client-context.ts'
import { callSignal } from '../client-context.ts'
import { isObject, parsed, textOf } from '../cloud-event.ts'
import { Agent } from './agent.ts'
import { registryFailure } from './agent-failure.ts'
import type { ServeAgentOptions } from './served-agent.ts'
import { ServedAgent } from './served-agent.ts'

/** The agents of the server: `agents('echo').send('hi')` calls one. */
export interface Agents {
  (id: string): Agent
  /** Registers an agent, and keeps it registered until it is closed. */
  serve(options: ServeAgentOptions): Promise<ServedAgent>
  /** Returns the cards of all agents, or of those with one of the tags among their skills. */
  list(options?: {
    readonly skillTags?: readonly string[] | undefined
    readonly signal?: AbortSignal | undefined
  }): Promise<readonly Readonly<Record<string, unknown>>[]>
}

export function agentsOf(context: ClientContext): Agents {
  return Object.assign((id: string) => new Agent(context, id), {
    serve: (options: ServeAgentOptions) => ServedAgent.start(context, options),
    async list({
      skillTags,
      signal,
    }: { skillTags?: readonly string[] | undefined; signal?: AbortSignal | undefined } = {}) {
      const cards: Readonly<Record<string, unknown>>[] = []
      for (let cursor: string | undefined; ; cursor = textOf(cards.at(-1)?.['agent_id'])) {
        const answer = await context.transport.call(
          {
            method: 'GET',
            path: '/agents',
            query: { cursor, skill_tags: skillTags?.join(',') },
            repeatable: true,
            signal: callSignal(context, signal),
          },
          registryFailure,
        )
        const page = parsed(answer.text)
        cards.push(...(Array.isArray(page) ? page.filter(isObject) : []))
        // The next page begins after the last agent of this one.
        if (!/rel="next"/.test(answer.headers.get('link') ?? '')) return cards
      }
    },
  })
}
