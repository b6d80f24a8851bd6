import type { Attack } from '../attack.ts'
import { makeChannels } from '../channels.ts'
import { during } from '../tally.ts'

const CHANNELS = 9_000

export const channelList: Attack = {
  name: 'channel-list',
  about: 'channel_list, statistics and the snapshot with 9,000 channels, eight at a time',
  settings: { MAX_CHANNELS: '20000' },
  async prepare(scene) {
    await makeChannels(scene, scene.scaled(CHANNELS, 600), (index) => `attack.${index}`)
    return async () => {
      const caller = scene.attacker()
      const asks = [
        () => caller.tool('channel_list', {}),
        () => caller.tool('channel_list', { pattern: '*9*' }),
        () => caller.tool('channel_list', { pattern: 'attack.5', type: 'events' }),
        () => scene.viewer.ask('GET', `${scene.api}/v1/stats/channels?limit=1000`),
        () => scene.viewer.ask('GET', `${scene.api}/api/snapshot`),
      ]
      await during(scene.floodMs, 8, async (index) => {
        const ask = asks[index % asks.length]
        if (ask !== undefined) await scene.tally.of(ask())
      })
    }
  },
}
