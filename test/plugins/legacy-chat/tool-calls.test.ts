import t from 'tap'
import { ToolCalls } from '../../../plugins/legacy-chat/exchange.ts'

void t.test('tool calls show the names of the tools, whatever the types of their events', (t) => {
	const shown: unknown[] = []
	const calls = new ToolCalls((type, data) => shown.push([type, ...Object.values(data)]))
	const handle = (event_type: string, payload: Record<string, unknown>): void => calls.handle({ event_type, payload })
	handle('skill.invoked', { skill: 'weather', skill_id: 's', call_id: '1', arguments: '{"city":"Bonn"}' })
	handle('primitive.called', { primitive: 'memory.recall', call_id: '1.a', arguments: '' })
	handle('primitive.result', { primitive: 'memory.recall', call_id: '1.a', result: '[]' })
	handle('skill.logged', { skill: 'weather', skill_id: 's', lines: ['x'] })
	handle('skill.completed', { skill: 'weather', skill_id: 's', call_id: '1', result: 'rain' })
	handle('mcp.called', { server: 'shop', tool: 'buy', call_id: '2', arguments: '{"no JSON' })
	handle('mcp.failed', { server: 'shop', tool: 'buy', call_id: '2', code: 'mcp_failed', message: 'sold out' })
	handle('clock.asked', { tool: 'clock', call_id: '3', arguments: '{}' })
	handle('primitive.failed', { primitive: 'x', call_id: 'unknown', code: 'tool_failed', message: 'm' })
	t.strictSame(shown, [
		['invoke_start', 'weather', { city: 'Bonn' }],
		['invoke_start', 'memory.recall', {}],
		['invoke_end', '[]'],
		['invoke_end', 'rain'],
		['invoke_start', 'mcp__shop__buy', '{"no JSON'],
		['invoke_end', '{"error":{"code":"mcp_failed","message":"sold out"}}'],
		['invoke_start', 'clock', {}],
	])
	t.strictSame([...calls.skills], ['weather'])
	t.end()
})
