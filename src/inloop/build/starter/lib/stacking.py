"""Stacks and queues, and what they are good for."""

from inloop.build.starter.library import cases


@cases("(a)", "((a)b)", "", "abc", "()()", "(()", "((()))", "a)(", "(()(()))", ")(", "x(y(z))", "(((")
def bracket_depth(text):
    """Give the deepest level of brackets, or -1 if they do not fit."""
    depth = 0
    deepest = 0
    for letter in text:
        if letter == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif letter == ")":
            depth -= 1
            if depth < 0:
                return -1
    return deepest if depth == 0 else -1


@cases("([])", "(]", "a)b", "((", "", "{[()]}", "{[(])}", "x[1](y)", "[}]", "()[", "<(>)", "{a}b}")
def bad_bracket_at(text):
    """Find the first bracket that closes the wrong thing; -1 if there is none."""
    pairs = {")": "(", "]": "[", "}": "{"}
    stack = []
    for index, letter in enumerate(text):
        if letter in pairs.values():
            stack.append(letter)
        elif letter in pairs:
            if not stack or stack.pop() != pairs[letter]:
                return index
    return -1


@cases([2, 1, 3], [3, 2, 1], [], [1, 2, 3], [5], [2, 2, 4], [4, 1, 2, 6], [1, 1], [7, 3, 5, 4, 8], [0, -1, 0, 1], [9, 2, 2, 3])
def next_greater(numbers):
    """Give for each number the next one that is greater, or None."""
    out = [None] * len(numbers)
    waiting = []
    for index, number in enumerate(numbers):
        while waiting and numbers[waiting[-1]] < number:
            spot = waiting.pop()
            out[spot] = number
        waiting.append(index)
    return out


@cases([20, 22, 21, 23], [30, 29, 28], [], [10], [15, 15, 16], [1, 2, 3], [5, 3, 4, 6], [9, 1, 1, 2], [-3, -5, 0], [18, 17, 16, 19, 20], [7, 8, 7, 8])
def days_until_warmer(degrees):
    """Count for each day the days until it is warmer; 0 if it never is."""
    out = []
    for index, today in enumerate(degrees):
        wait = 0
        for later in range(index + 1, len(degrees)):
            if degrees[later] > today:
                wait = later - index
                break
        out.append(wait)
    return out


@cases([10, 8, 9], [1, 2, 3], [3, 2, 1], [], [5], [4, 4, 4], [6, 3, 4, 5, 7], [2, 1, 2], [8, 5, 6, 5, 9], [1, 5, 1, 5], [10, 4, 5, 9, 12])
def price_spans(prices):
    """Count for each day the days in a row, up to it, with no higher price."""
    spans = []
    stack = []
    for day, price in enumerate(prices):
        while stack and prices[stack[-1]] <= price:
            stack.pop()
        previous = stack[-1] if stack else -1
        spans.append(day - previous)
        stack.append(day)
    return spans


@cases("2+3*4", "2*3+4", "a", "a-b-c", "(a+b)*c", "a*(b-c)", "x/y*z", "1+2", "((a))", "a+b*c-d", "(a-b)/(c+d)", "a-(b+c)")
def to_postfix(text):
    """Write a sum with its signs behind the numbers."""
    ranks = {"+": 1, "-": 1, "*": 2, "/": 2}
    out = ""
    stack = []
    for char in text:
        if char.isalnum():
            out += char
        elif char == ")":
            while stack[-1] != "(":
                out += stack.pop()
            stack.pop()
        else:
            while char != "(" and stack and ranks.get(stack[-1], 0) >= ranks[char]:
                out += stack.pop()
            stack.append(char)
    return out + "".join(reversed(stack))


@cases("+ 2 3", "- 9 4", "* + 1 2 3", "- 10 - 4 1", "7", "* 2 * 3 4", "+ * 2 5 1", "- 3 8", "* 0 9", "+ 1 - 6 * 2 2", "- * 4 4 + 3 2")
def polish_value(text):
    """Work out a sum that has its signs (+, - or *) in front of the numbers."""
    stack = []
    for token in reversed(text.split()):
        if token.isdigit():
            stack.append(int(token))
            continue
        left = stack.pop()
        right = stack.pop()
        if token == "+":
            stack.append(left + right)
        elif token == "-":
            stack.append(left - right)
        else:
            stack.append(left * right)
    return stack[-1]


@cases((["a", "b", "undo"],), (["a", "undo", "redo"],), ([],), (["undo"],), (["a", "b", "undo", "undo", "redo"],), (["a", "undo", "b", "redo"],), (["redo", "x"],), (["a", "b", "undo", "c"],), (["p", "undo", "undo", "q"],), (["a", "b", "c"],), (["a", "b", "undo", "redo", "undo"],))
def replay_commands(commands):
    """Give what is done after all undo and redo commands."""
    done = []
    undone = []
    for command in commands:
        if command == "undo":
            if done:
                undone.append(done.pop())
        elif command == "redo":
            if undone:
                done.append(undone.pop())
        else:
            done.append(command)
            undone.clear()
    return done


@cases("abba", "abc", "aab", "", "azxxzy", "aaa", "cc", "noon", "abccbd", "mississippi", "xyyxz")
def vanish_pairs(text):
    """Take out pairs of equal neighbours until there are none."""
    stack = []
    for letter in text:
        if stack and stack[-1] == letter:
            stack.pop()
        else:
            stack.append(letter)
    return "".join(stack)


@cases("ab<c", "a<<b", "<", "", "hello<<p", "x<y<z<", "abc@", "ab@cd", "a@<b", "<<q", "one@two<")
def typed_text(keys):
    """Give the text after all keys; < takes back one letter and @ all of them."""
    letters = []
    for key in keys:
        if key == "<":
            if letters:
                letters.pop()
        elif key == "@":
            letters.clear()
        else:
            letters.append(key)
    return "".join(letters)


@cases((["+Ann", "+Bob", "-"],), (["-"],), ([],), (["+Ann", "-", "-", "+Cy"],), (["+Ann", "!Bob"],), (["+A", "+B", "!C", "-"],), (["!A", "!B"],), (["+Z", "+Y", "-", "+X"],), (["+A", "-", "!D", "+E"],), (["+K", "+L", "+M"],), (["!Q", "+R", "-", "-"],))
def line_at_desk(events):
    """List who still waits; + joins the queue, ! pushes in and - is served."""
    queue = []
    for event in events:
        sign, name = event[0], event[1:]
        if sign == "+":
            queue.append(name)
        elif sign == "!":
            queue.insert(0, name)
        elif queue:
            queue.pop(0)
    return queue


@cases((["a", "b", "c"], 2), (["a", "b", "c", "d"], 3), (["a"], 5), (["x", "y"], 1), (["a", "b", "c", "d", "e"], 2), (["k", "l", "m"], 1), (["p", "q", "r"], 4), (["a", "b", "c", "d", "e"], 7), (["s", "t"], 2), (["a", "b", "c", "d"], 1), ([], 3))
def counting_out(names, step):
    """List the names in the order in which a rhyme of some words takes them out."""
    queue = list(names)
    out = []
    while queue:
        for turn in range(step - 1):
            first = queue.pop(0)
            queue.append(first)
        out.append(queue.pop(0))
    return out


@cases(([1, 2, 3], [3, 2, 1]), ([1, 2, 3], [1, 2, 3]), ([1, 2, 3], [3, 1, 2]), ([1, 2], [2, 1]), ([], []), ([1], [2]), ([1, 2, 3, 4], [2, 1, 4, 3]), ([1, 2, 3, 4], [4, 1, 2, 3]), ([5, 6, 7], [6, 7, 5]), ([5, 6, 7], [7, 5, 6]), ([1, 2], [1]))
def can_pop(pushed, popped):
    """Tell if a stack can give things back in an order."""
    stack = []
    position = 0
    for value in pushed:
        stack.append(value)
        while stack and position < len(popped) and stack[-1] == popped[position]:
            stack.pop()
            position += 1
    return not stack


@cases([5, 10, -5], [8, -8], [10, 2, -5], [-2, -1, 1, 2], [], [3, -4], [1, -1, 2], [5, -3, -6], [7, 2, -2, -3], [4, -4, -4], [-5, 6], [2, 3, -3, -1])
def rocks_left(rocks):
    """List what is left when rocks fly right (above 0) and left and the larger wins."""
    stack = []
    for rock in rocks:
        alive = True
        while alive and rock < 0 and stack and stack[-1] > 0:
            top = stack[-1]
            alive = top < -rock
            if top <= -rock:
                stack.pop()
        if alive:
            stack.append(rock)
    return stack


@cases("2[ab]", "a3[b]c", "2[a2[b]]", "xyz", "", "0[a]b", "2[x]3[y]", "1[q]", "2[3[z]]", "2[a]b", "4[no]", "2[b1[c]d]")
def unfold_repeats(text):
    """Write out the parts in brackets as often as the digit in front of them says."""
    stack = []
    current = ""
    times = 1
    for char in text:
        if char.isdigit():
            times = int(char)
        elif char == "[":
            stack.append((current, times))
            current = ""
        elif char == "]":
            before, count = stack.pop()
            current = before + current * count
        else:
            current += char
    return current


@cases(({"a": 3, "b": 1}, 2), ({"a": 1, "b": 2}, 5), ({}, 1), ({"x": 5, "y": 3, "z": 1}, 2), ({"p": 4, "q": 4}, 2), ({"a": 2}, 1), ({"k": 3, "l": 2, "m": 1}, 1), ({"c": 6, "d": 5}, 3), ({"e": 1, "f": 9, "g": 3}, 3), ({"s": 2, "t": 3}, 2), ({"u": 7, "v": 1, "w": 2}, 1))
def finish_times(tasks, turn):
    """Give when each task is ready if every one may run for a turn in its turn."""
    queue = list(tasks.items())
    finished = {}
    clock = 0
    while queue:
        name, needed = queue.pop(0)
        clock += min(needed, turn)
        if needed > turn:
            queue.append((name, needed - turn))
        else:
            finished[name] = clock
    return finished
