import type { ScreenProps } from '../screens.ts'
import { AgentList } from './agent-list.tsx'
import { Agent } from './agent.tsx'

/** The registered agents; the place `agents/ID` is one of them. */
export function Agents({ place }: ScreenProps) {
  const [, id] = place.path
  return id === undefined ? <AgentList search={place.query['search'] ?? ''} /> : <Agent key={id} id={id} />
}
