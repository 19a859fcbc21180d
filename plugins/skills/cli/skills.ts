import { hash } from 'node:crypto'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { pick } from '../../../core/cli/pick.ts'
import { reviewText } from './review-text.ts'
import type { Review, Skill } from './review-text.ts'
import { documentFrom } from './source.ts'
import { when } from '../../../core/cli/when.ts'

interface Approval {
	digest?: string
	yes?: boolean
	full?: boolean
}

export default {
	examples: `
A skill does nothing until it is approved. A document without findings is not a safe one: read it.

Examples:
  svc skills install ada ./weather          a folder with a SKILL.md
  svc skills install ada https://skills.example.com/weather/SKILL.md
  svc skills review ada weather
  svc skills approve ada weather            shows it again, and asks
  svc skills approve ada weather --digest "sha256:$(sha256sum < SKILL.md | cut -d' ' -f1)"
  svc skills remove ada weather`,
	commands: {
		list: {
			description: 'List the skills of an agent',
			arguments: '<agent>',
			async run(cli, { agent }: { agent: string }) {
				cli.out.answer(await listed(cli, agent), (list, style) =>
					style.table(
						['skill', 'status', 'id', 'installed', 'description'],
						list.map((one) => [one.name, one.status, one.id, when(one.installed_at), one.description]),
						`No skills yet. Install one: svc skills install ${agent} FOLDER`,
					),
				)
			},
		},
		install: {
			description:
				'Install a skill into quarantine: from a file, a folder with a SKILL.md, an address, or - for standard input',
			arguments: '<agent> <source>',
			async run(cli, { agent, source }: { agent: string; source: string }) {
				const body = await documentFrom(cli, source)
				const skill = await cli.api.request<Skill>('POST', path`/v1/agents/${agent}/skills/install`, body)
				cli.out.answer(skill, ({ id, name }, style) =>
					[`Installed ${style.bold(style.plain(name))} into quarantine.`, `  id: ${id}`].join('\n'),
				)
				cli.out.note(`No run can use it yet. Review it: svc skills review ${agent} ${skill.id}`)
			},
		},
		review: {
			description: 'Show what a skill may do, what a scan found in it, and what it changes',
			arguments: '<agent> <skill>',
			options: {
				'--full': 'the complete document, even if there is an active revision to compare it with',
			},
			async run(cli, { agent, skill: wanted, full = false }: { agent: string; skill: string; full?: boolean }) {
				const review = await reviewOf(cli, agent, wanted)
				cli.out.answer(review, (one, style) => reviewText(one, style, full))
				if (review.status === 'quarantined')
					cli.out.note(
						`To approve what you see: svc skills approve ${agent} ${review.id} --digest sha256:${review.digest}`,
					)
			},
		},
		approve: {
			description: 'Show a skill, ask, and approve exactly what was shown',
			arguments: '<agent> <skill>',
			options: {
				'--digest <sha256>': 'approve without asking if this is still its digest',
				'--full': 'show the complete document, not only the changes',
				...yesOption,
			},
			async run(cli, { agent, skill: wanted, ...options }: { agent: string; skill: string } & Approval) {
				const review = await reviewOf(cli, agent, wanted)
				const digest = await consented(cli, review, agent, options)
				const approved = await cli.api.request<Skill>('POST', path`/v1/agents/${agent}/skills/${review.id}/approve`, {
					digest,
				})
				cli.out.answer(
					approved,
					({ name }, style) => `Approved ${style.bold(style.plain(name))}: runs of ${agent} have it.`,
				)
			},
		},
		remove: {
			description: 'Remove a skill, by name or id; its running calls end',
			arguments: '<agent> <skill>',
			options: {
				...yesOption,
			},
			async run(cli, { agent, skill: wanted, ...options }: { agent: string; skill: string; yes?: boolean }) {
				const { id, name, status } = found(await listed(cli, agent), wanted)
				await consent(cli, options, `Remove the ${status} skill ${name} (${id}) from ${agent}?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/skills/${id}`)
				cli.out.answer({ id, status: 'removed' }, (_, style) => `Removed ${style.plain(name)}.`)
			},
		},
	},
} satisfies Command

function listed(cli: Cli, agent: string): Promise<Skill[]> {
	return cli.api.request<Skill[]>('GET', path`/v1/agents/${agent}/skills`)
}

/** Of several revisions of a name, the pending one is the one to review. */
async function reviewOf(cli: Cli, agent: string, wanted: string): Promise<Review> {
	const list = await listed(cli, agent)
	const waiting = list.filter((one) => one.status === 'quarantined' && one.name === wanted)
	const { id } = found(waiting.length > 0 ? waiting : list, wanted)
	return cli.api.request<Review>('GET', path`/v1/agents/${agent}/skills/${id}`)
}

/** The digest to approve: of the exact text that was shown, or the one that the user names. */
async function consented(
	cli: Cli,
	review: Review,
	agent: string,
	{ digest, yes = false, full = false }: Approval,
): Promise<string> {
	if (digest !== undefined) {
		const named = digest.replace(/^sha256:/i, '').toLowerCase()
		if (!/^[0-9a-f]{64}$/.test(named))
			throw new CliError('usage', '--digest must be sha256: and 64 hex digits, as the review shows it')
		if (named === review.digest) return named
		throw new CliError(
			'conflict',
			`the document has changed to sha256:${review.digest}; review it again: svc skills review ${agent} ${review.id}`,
			{ code: 'digest_mismatch' },
		)
	}
	const shown = hash('sha256', review.markdown)
	if (shown !== review.digest)
		throw new CliError(
			'conflict',
			'the gateway does not show all of this document, since it contains a secret of the vault; remove the secret from it and install it again',
		)
	if (!yes && (cli.out.json || !cli.ask.canAsk))
		throw new CliError(
			'usage',
			`this is not a terminal: review it, and give its --digest (svc skills review ${agent} ${review.id}), or --yes`,
		)
	cli.out.write(`${reviewText(review, cli.out.style, full)}\n\n`)
	await consent(cli, { yes }, `Approve ${review.name} for ${agent}, as shown above?`)
	return shown
}

function found(list: Skill[], wanted: string): Skill {
	return pick(list, wanted, { kind: 'skill', id: (one) => one.id, names: (one) => [one.name] })
}
