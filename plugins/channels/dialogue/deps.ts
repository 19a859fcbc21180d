/** What the parts of the dialogue share. Each takes the fields that it needs. */
import type { Context } from '../../../core/plugin.ts'
import type { Registry } from '../registry.ts'
import type { FollowedRuns } from './followed.ts'
import type { Marks } from './marks.ts'
import type { Pace } from './pace.ts'
import type { Platforms } from './platforms.ts'
import type { ChatSessions } from './sessions.ts'

export interface DialogueDeps {
	ctx: Context
	registry: Registry
	platforms: Platforms
	pace: Pace
	marks: Marks
	sessions: ChatSessions
	runs: FollowedRuns
}
