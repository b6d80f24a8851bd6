import type { AgentLookup } from '../agent-lookup.ts'

/** The longest wait for the news of a registration that the engine already has, in ms. */
const LONGEST_MS = 2_000

/**
 * Resolves when this node follows the registration of an agent that another node knows already, or
 * at once if the agent is not registered.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
export async function awaitRegistration(
  registry: Pick<AgentLookup, 'find' | 'get' | 'onChange'>,
  agentId: string,
): Promise<void> {
  const card = await registry.find(agentId)
  if (card === undefined || registry.get(agentId) !== undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const unfollow = registry.onChange((change) => {
    if (change.agentId === agentId) resolve()
  })
  const timer = setTimeout(resolve, LONGEST_MS)
  timer.unref()
  await promise
  clearTimeout(timer)
  unfollow()
}
