/** The checks of the gateway's channel contract, on this adapter and the platform of platform.ts: `svc plugins test`. */
import { test } from 'node:test'
import { checkChannel } from 'svc-gateway/testing'
import { adapter } from './index.ts'
import { startPlatform } from './platform.ts'

checkChannel(
	{ test },
	{
		adapter,
		platform: startPlatform,
		// What the adapter or the platform does not have. Once it has it, remove the flag: its checks then apply.
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
			find: false, // not needed, since the platform knows nonces
			format: false,
		},
	},
)
