import type { Command } from '../command.ts'
import { MANAGEMENT_COMMANDS } from './management.ts'
import { MESSAGE_COMMANDS } from './messages.ts'
import { SETUP_COMMANDS } from './setup.ts'

/** The commands, in the order of the help. Each loads its code when it runs. */
export const COMMANDS: readonly Command[] = [...MESSAGE_COMMANDS, ...MANAGEMENT_COMMANDS, ...SETUP_COMMANDS]
