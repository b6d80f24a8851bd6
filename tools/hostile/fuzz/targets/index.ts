import type { Target } from '../target.ts'
import { agentTargets } from './agents.ts'
import { cardTargets } from './cards.ts'
import { cloudEventTargets } from './cloud-events.ts'
import { eventTargets } from './events.ts'
import { jsonTargets } from './json.ts'
import { ruleTargets } from './rules.ts'
import { serverTargets } from './server.ts'
import { settingTargets } from './settings.ts'
import { storedTargets } from './stored.ts'
import { toolTargets } from './tools.ts'

/** Every part that accepts input from strangers, operators and other nodes. */
export const TARGETS: readonly Target[] = [
  ...jsonTargets,
  ...toolTargets,
  ...cardTargets,
  ...cloudEventTargets,
  ...eventTargets,
  ...agentTargets,
  ...settingTargets,
  ...ruleTargets,
  ...storedTargets,
  ...serverTargets,
]
