import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Channels() {
  return (
    <Page title="Channels">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}
