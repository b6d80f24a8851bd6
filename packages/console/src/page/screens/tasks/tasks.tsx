import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Tasks() {
  return (
    <Page title="Tasks and streams">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}
