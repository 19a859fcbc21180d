import type { Server } from '@hapi/hapi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { agentName } from '../shared/agent-name.ts'
import { scoped } from '../shared/scopes.ts'
import type { Runs } from './contract.ts'

const approval_id = Joi.string()
	.max(64)
	.required()
	.example('9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08')
const approval = Joi.object({
	approval_id,
	tool: Joi.string().required().example('mcp__files__delete'),
	arguments: Joi.object().unknown().required().example({ path: 'notes/old.txt' }),
	approved_at: Joi.string().isoDate().required().example('2026-11-02T09:30:00.000Z'),
}).id('Approval')

/** Calls that were approved permanently. */
export function approvalRoutes(server: Server, ctx: Context, runs: Pick<Runs, 'approvals' | 'revokeApproval'>): void {
	server.route<{ Params: { name: string } }>({
		method: 'GET',
		path: '/v1/agents/{name}/approvals',
		options: {
			id: 'listApprovals',
			description: 'List the tool calls that were answered with `approve_always`, newest first',
			notes: 'Each applies to the same tool with the same arguments, until it is revoked. At most 1,000.',
			tags: ['api', 'runs'],
			auth: scoped('agents:read'),
			validate: { params: Joi.object({ name: agentName }) },
			response: { status: { 200: Joi.array().items(approval) } },
		},
		handler: async (request) => runs.approvals(await ctx.use('agents').get(request.params.name)),
	})
	server.route<{ Params: { name: string; approval_id: string } }>({
		method: 'DELETE',
		path: '/v1/agents/{name}/approvals/{approval_id}',
		options: {
			id: 'revokeApproval',
			description: 'Revoke a permanent approval; the call needs approval again',
			tags: ['api', 'runs'],
			auth: scoped('runs:write'),
			validate: {
				params: Joi.object({ name: agentName, approval_id: approval_id.description('Id of the approval.') }),
			},
		},
		handler: async (request, h) => {
			const { name, approval_id } = request.params
			await runs.revokeApproval(await ctx.use('agents').get(name), approval_id)
			return h.response().code(204)
		},
	})
}
