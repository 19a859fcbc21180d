/** Runs the checks of the gateway's channel contract on this adapter, with the platform of platform.ts: `svc plugins test`. */
import { test } from 'node:test'
import { checkChannel } from 'svc-gateway/testing'
import { adapter } from './index.ts'
import { startPlatform } from './platform.ts'

checkChannel(
	{ test },
	{
		adapter,
		platform: startPlatform,
		// Abilities that the adapter or the platform lacks. Remove a flag once the ability exists: its checks then apply.
		abilities: {
			unguarded: false,
			groups: false,
			replies: false,
			threads: false,
			attachments: false,
			files: false,
			repeats: false,
			edits: false,
			drafts: false,
			typing: false,
			sends_files: false,
			find: false, // not needed, since the platform has nonces
			format: false,
		},
	},
)
