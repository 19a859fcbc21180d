import { Fault } from '../../core/errors.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import events from './events.ts'
import type { SkillCode, SkillSettings, Skills } from './contract.ts'
import { openHosts } from './hosts.ts'
import { openLibrary } from './library.ts'
import { recheck } from './recheck.ts'
import { routes } from './routes.ts'
import { skillsOf } from './skills.ts'
import { addSkillTools } from './tools.ts'
import { openCallTracker } from './call-tracker.ts'

/** Less than the time for which the gateway waits for a release. */
const FINISH_MS = 8_000

/** Skills: folders with a Markdown document that an agent can use after an operator approved them. */
export default definePlugin<SkillSettings, Skills>({
	name: 'skills',
	needs: ['auth', 'agents'],
	events,
	errors: {
		skill_invalid: { status: 400, description: "The skill's document breaks a rule, or its program has an error." },
		skill_ambiguous: {
			status: 400,
			description: 'The source contains several skills, and the request does not select one by its path.',
		},
		skill_failed: { status: 502, description: 'The program of the skill threw an error.' },
		sandbox_timeout: { status: 504, description: 'The program of a skill exceeded its time limit.' },
		sandbox_memory: { status: 502, description: 'The program of a skill exceeded its memory limit.' },
		sandbox_crash: { status: 502, description: 'The process of a skill ended unexpectedly.' },
		sandbox_busy: {
			status: 503,
			description: 'Too many programs of skills of this agent, or of all agents, wait for a process.',
		},
	} satisfies Record<SkillCode, ErrorCode>,
	start(ctx) {
		const hosts = ctx.own(openHosts({ settings: ctx.config, log: ctx.log }), 'skill hosts')
		const callTracker = openCallTracker()
		// Calls in progress may complete in this instance, while another instance gets new calls.
		const interrupted = new Fault(
			'unavailable',
			'a change of the configuration interrupted the call of the skill; call it again',
		)
		const finish = () => callTracker.finish(ctx.gateway.state() === 'draining' ? 0 : FINISH_MS, interrupted)
		ctx.defer(finish, 'calls of skills')
		const library = openLibrary(ctx)
		void ctx.serving
			.then(() => recheck(ctx, library))
			.catch((error: unknown) => ctx.log.error({ err: error }, 'the approved skills could not be checked'))
		addSkillTools(ctx, library, hosts, callTracker)
		const skills = skillsOf(ctx, hosts, library, callTracker)
		ctx.extend('agent', { skills })
		return skills
	},
	http: routes,
})
