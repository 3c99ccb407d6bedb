#include "tests/emulator/trapped_tiles.h"

#include <signal.h>
#include <ucontext.h>

#include <cstring>

#include "tests/emulator/tiles.h"

namespace emulated {

namespace {

using Registers = gregset_t;

// One instruction in the three-byte form of VEX with a 0F38 opcode, W0 and L0, as all of AMX are. The fields
// have the names of Intel's manual: `reg`, `rm` and `vvvv` are numbers of registers, `pp` stands for one of
// the prefixes below. Where the operand is no register, `address` is that of its bytes, or of its first row,
// and `stride` leads to the next row.
struct Instruction {
  uint8_t opcode = 0, pp = 0, vvvv = 0, reg = 0, rm = 0;
  bool in_memory = false;
  uint64_t address = 0;
  int64_t stride = 0;
  int length = 0;
};

constexpr uint8_t no_prefix = 0, prefix_66 = 1, prefix_f3 = 2, prefix_f2 = 3;

uint64_t value(const Registers& registers, int number) {
  constexpr int names[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(registers[names[number]]);
}

// Reads the address of an operand in memory, whose bytes follow ModRM at `next`; returns what follows them.
const uint8_t* read_address(const uint8_t* next, const Registers& registers, uint8_t vex, uint8_t modrm,
                            Instruction& i) {
  const int mod = modrm >> 6;
  int base = (modrm & 7) | (vex & 0x20 ? 0 : 8);
  if ((modrm & 7) == 4) {  // a byte SIB
    const uint8_t sib = *next++;
    base = (sib & 7) | (vex & 0x20 ? 0 : 8);
    const int index = (sib >> 3 & 7) | (vex & 0x40 ? 0 : 8);
    if (index != 4) i.stride = static_cast<int64_t>(value(registers, index) << (sib >> 6));
  }
  const bool no_base = mod == 0 && (base & 7) == 5, by_rip = no_base && (modrm & 7) != 4;
  int64_t displacement = 0;
  if (mod == 1) {
    displacement = load<int8_t>(next);
    next += 1;
  } else if (mod == 2 || no_base) {
    displacement = load<int32_t>(next);
    next += 4;
  }
  const uint64_t from = by_rip ? reinterpret_cast<uint64_t>(next) : no_base ? 0 : value(registers, base);
  i.address = from + static_cast<uint64_t>(displacement);
  return next;
}

// Returns the instruction at `code`, whose length is 0 where it is of another form.
Instruction decode(const uint8_t* code, const Registers& registers) {
  Instruction i;
  const uint8_t first = code[1], second = code[2], modrm = code[4];
  const bool in_0f38 = (first & 0x1f) == 2, w0_l0 = (second & 0x84) == 0;
  if (code[0] != 0xc4 || !in_0f38 || !w0_l0) return i;
  i.opcode = code[3];
  i.pp = second & 3;
  i.vvvv = ~second >> 3 & 15;
  i.reg = static_cast<uint8_t>((modrm >> 3 & 7) | (first & 0x80 ? 0 : 8));
  i.rm = static_cast<uint8_t>((modrm & 7) | (first & 0x20 ? 0 : 8));
  i.in_memory = modrm >> 6 != 3;
  const uint8_t* end = code + 5;
  if (i.in_memory) end = read_address(end, registers, first, modrm, i);
  i.length = static_cast<int>(end - code);
  return i;
}

// Runs the instruction; returns false where it is none of those that the kernels use.
bool run(const Instruction& i) {
  void* const memory = reinterpret_cast<void*>(i.address);
  if (i.opcode == 0x49 && i.pp == no_prefix && i.in_memory && i.reg == 0)
    tile_loadconfig(static_cast<const char*>(memory) + i.stride);  // where an index adds to the address
  else if (i.opcode == 0x49 && i.pp == no_prefix && !i.in_memory && i.reg == 0 && i.rm == 0)
    tile_release();
  else if (i.opcode == 0x49 && i.pp == prefix_f2 && !i.in_memory && i.rm == 0)
    tile_zero(i.reg);
  else if (i.opcode == 0x4b && i.pp == prefix_f2 && i.in_memory)
    tile_loadd(i.reg, memory, i.stride);
  else if (i.opcode == 0x4b && i.pp == prefix_f3 && i.in_memory)
    tile_stored(i.reg, memory, i.stride);
  else if (i.opcode == 0x5c && i.pp == prefix_f3 && !i.in_memory)
    tile_dpbf16ps(i.reg, i.rm, i.vvvv);
  else
    return false;
  return true;
}

void on_illegal_instruction(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const Instruction i = decode(reinterpret_cast<const uint8_t*>(registers[REG_RIP]), registers);
  require(i.length > 0 && run(i), "an illegal instruction that is none of AMX");
  registers[REG_RIP] += i.length;
}

}  // namespace

void trap_tiles() {
  struct sigaction action {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  require(sigaction(SIGILL, &action, nullptr) == 0, "no handler of illegal instructions");
}

}  // namespace emulated
