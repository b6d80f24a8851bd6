import { NATS_SERVER } from '@signalbox/engine-nats/testing'

import { describeReadme, startNodes } from '../testing/readme-commands.ts'

describeReadme({ name: 'README, a node on NATS', open: (stack) => startNodes(stack, 1) }, NATS_SERVER !== undefined)
