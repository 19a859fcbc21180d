import { createHash } from 'node:crypto'
import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { pick } from '../pick.ts'
import { reviewText } from '../skills-review.ts'
import type { Review, Skill } from '../skills-review.ts'
import { documentFrom } from '../skills-source.ts'
import { when } from '../when.ts'

interface Approval {
	digest?: string
	yes?: boolean
	full?: boolean
}

export const register: Register = (program, cli) => {
	const skills = program
		.command('skills')
		.description('Install, review and approve skills')
		.addHelpText('after', examples)

	skills
		.command('list <agent>')
		.description('List the skills of an agent')
		.action(async (agent: string) => {
			cli.out.answer(await listed(agent), (list, style) =>
				style.table(
					['skill', 'status', 'id', 'installed', 'description'],
					list.map((one) => [one.name, one.status, one.id, when(one.installed_at), one.description]),
					`No skills yet. Install one: svc skills install ${agent} FOLDER`,
				),
			)
		})

	skills
		.command('install <agent> <source>')
		.description(
			'Install a skill into quarantine: from a file, a folder with a SKILL.md, an address, or - for standard input',
		)
		.action(async (agent: string, source: string) => {
			const body = await documentFrom(cli, source)
			const skill = await cli.api.request<Skill>('POST', path`/v1/agents/${agent}/skills/install`, body)
			cli.out.answer(skill, ({ id, name }, style) =>
				[`Installed ${style.bold(style.plain(name))} into quarantine.`, `  id: ${id}`].join('\n'),
			)
			cli.out.note(`No run can use it yet. Review it: svc skills review ${agent} ${skill.id}`)
		})

	skills
		.command('review <agent> <skill>')
		.description('Show what a skill may do, what a scan found in it, and what it changes')
		.option('--full', 'the whole document, also where there is an active revision to compare it with')
		.action(async (agent: string, wanted: string, { full = false }: { full?: boolean }) => {
			const review = await reviewOf(agent, wanted)
			cli.out.answer(review, (one, style) => reviewText(one, style, full))
			if (review.status === 'quarantined')
				cli.out.note(
					`To approve what you see: svc skills approve ${agent} ${review.id} --digest sha256:${review.digest}`,
				)
		})

	skills
		.command('approve <agent> <skill>')
		.description('Show a skill, ask, and approve exactly what was shown')
		.option('--digest <sha256>', 'approve without asking if this is still its digest')
		.option('--full', 'show the whole document, not its changes alone')
		.option(...yesOption)
		.action(async (agent: string, wanted: string, options: Approval) => {
			const review = await reviewOf(agent, wanted)
			const digest = await consented(review, agent, options)
			const approved = await cli.api.request<Skill>('POST', path`/v1/agents/${agent}/skills/${review.id}/approve`, {
				digest,
			})
			cli.out.answer(
				approved,
				({ name }, style) => `Approved ${style.bold(style.plain(name))}: runs of ${agent} have it.`,
			)
		})

	skills
		.command('remove <agent> <skill>')
		.description('Remove a skill, by name or id; calls of it that are under way end')
		.option(...yesOption)
		.action(async (agent: string, wanted: string, options: { yes?: boolean }) => {
			const { id, name, status } = found(await listed(agent), wanted)
			await consent(cli, options, `Remove the ${status} skill ${name} (${id}) from ${agent}?`)
			await cli.api.request('DELETE', path`/v1/agents/${agent}/skills/${id}`)
			cli.out.answer({ id, status: 'removed' }, (_, style) => `Removed ${style.plain(name)}.`)
		})

	function listed(agent: string): Promise<Skill[]> {
		return cli.api.request<Skill[]>('GET', path`/v1/agents/${agent}/skills`)
	}

	/** Of several revisions of a name, the one that waits is the one to look at. */
	async function reviewOf(agent: string, wanted: string): Promise<Review> {
		const list = await listed(agent)
		const waiting = list.filter((one) => one.status === 'quarantined' && one.name === wanted)
		const { id } = found(waiting.length > 0 ? waiting : list, wanted)
		return cli.api.request<Review>('GET', path`/v1/agents/${agent}/skills/${id}`)
	}

	/** The digest to approve: of the very text that was shown, or the one that the user names. */
	async function consented(
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
				`the document is another one by now, sha256:${review.digest}; review it again: svc skills review ${agent} ${review.id}`,
				{ code: 'digest_mismatch' },
			)
		}
		const shown = createHash('sha256').update(review.markdown).digest('hex')
		if (shown !== review.digest)
			throw new CliError(
				'conflict',
				'the gateway does not show all of this document, since it holds a secret of the vault; take the secret out of it and install it anew',
			)
		if (!yes && (cli.out.json || !cli.ask.canAsk))
			throw new CliError(
				'usage',
				`nobody can be asked here: review it, and give its --digest (svc skills review ${agent} ${review.id}), or --yes`,
			)
		cli.out.write(`${reviewText(review, cli.out.style, full)}\n\n`)
		await consent(cli, { yes }, `Approve ${review.name} for ${agent}, as shown above?`)
		return shown
	}
}

function found(list: Skill[], wanted: string): Skill {
	return pick(list, wanted, { kind: 'skill', id: (one) => one.id, names: (one) => [one.name] })
}

const examples = `
A skill does nothing until it is approved. A document without findings is not a safe one: read it.

Examples:
  svc skills install ada ./weather          a folder with a SKILL.md
  svc skills install ada https://skills.example.com/weather/SKILL.md
  svc skills review ada weather
  svc skills approve ada weather            shows it again, and asks
  svc skills approve ada weather --digest "sha256:$(sha256sum < SKILL.md | cut -d' ' -f1)"
  svc skills remove ada weather`
