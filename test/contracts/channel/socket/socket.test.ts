/** A platform with a single socket: a cut ends the connection, and only the next connection shows that the token was revoked. */
import t from 'tap'
import { checkChannel } from '../../channel.ts'
import { adapter } from './adapter.ts'
import { socketPlatform } from './platform.ts'

checkChannel(t, {
	adapter,
	platform: socketPlatform,
	patience_ms: 5_000,
	abilities: {
		unguarded: false,
		groups: false,
		replies: false,
		threads: false,
		repeats: false,
		edits: false,
		drafts: false,
		typing: false,
		limited: false,
		format: false,
	},
})
