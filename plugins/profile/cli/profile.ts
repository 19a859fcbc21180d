import { path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { textOf } from '../../../core/cli/text-input.ts'
import { when } from '../../../core/cli/when.ts'
import type { Profile } from '../contract.ts'

export default {
	examples: `
Examples:
  svc profile show ada
  svc profile set ada "Ada keeps the books of Grace Bell, who prefers short answers."
  svc profile show ada --json | jq -r .content > ada.txt && $EDITOR ada.txt && svc profile set ada - < ada.txt
  svc profile undo ada`,
	commands: {
		show: {
			description: 'Show the profile',
			arguments: '<agent>',
			async run(cli, { agent }: { agent: string }) {
				cli.out.answer(await cli.api.request<Profile>('GET', path`/v1/agents/${agent}/profile`), ({ content }) =>
					content === '' ? `No profile yet. Write one: svc profile set ${agent} "Works for Grace Bell."` : content,
				)
			},
		},
		set: {
			description: 'Replace the profile; - reads it from standard input',
			arguments: '<agent> <text...>',
			options: {
				'--expect <version>': { about: 'fail if the profile has another version', max: Number.MAX_SAFE_INTEGER },
			},
			async run(cli, { agent, text: words, expect }: { agent: string; text: string[]; expect?: number }) {
				const content = (await textOf(cli, words)).trimEnd()
				const body = { content, expected_version: expect }
				const written = await cli.api.request<Profile>('PUT', path`/v1/agents/${agent}/profile`, body)
				cli.out.answer(written, ({ version }) => `Version ${version}.`)
			},
		},
		versions: {
			description: 'List earlier versions, newest first',
			arguments: '<agent>',
			async run(cli, { agent }: { agent: string }) {
				const where = path`/v1/agents/${agent}/profile/versions`
				const versions = await cli.api.request<Profile[]>('GET', where)
				answerTable(cli, versions, 'No earlier versions.', (one) => ({
					version: one.version,
					written: when(one.updated_at),
					profile: one.content,
				}))
			},
		},
		undo: {
			description: 'Restore the previous version',
			arguments: '<agent>',
			async run(cli, { agent }: { agent: string }) {
				const profile = await cli.api.request<Profile>('POST', path`/v1/agents/${agent}/profile/undo`)
				cli.out.answer(profile, ({ content }) => (content === '' ? 'The profile is empty now.' : content))
			},
		},
	},
} satisfies Command
