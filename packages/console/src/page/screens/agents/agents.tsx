import type { ScreenProps } from '../screens.ts'
import { AgentList } from './agent-list.tsx'
import { Agent } from './agent.tsx'

/** The registered agents; the place `agents/ID` is one of them, and `agents/ID/TASK` a task of its inbox. */
export function Agents({ place }: ScreenProps) {
  const [, id, task] = place.path
  if (id === undefined) return <AgentList search={place.query['search'] ?? ''} />
  return <Agent key={id} id={id} task={task} query={place.query} />
}
